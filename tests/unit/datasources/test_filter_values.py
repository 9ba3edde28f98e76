"""What a filter's value may say, whatever the database (spec datasources 9.4, 9.5)."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import pytest

from fetcher.datasources.filter_values import (
    INT64,
    Moment,
    UnfitValue,
    bytes_of,
    day_of,
    day_or_moment,
    double_of,
    integer_of,
    is_between_doubles,
    is_day,
    moment_of,
    number_of,
    size_of,
    text_of,
    truth_of,
    uuid_of,
    whole_bound,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9007199254740993", 9007199254740993),
        (" 10.50 ", Decimal("10.50")),
        ("1e3", 1000),
        ("-.5", Decimal("-0.5")),
        (Decimal("7.0"), 7),
        (Decimal("1e400"), 10**400),
        (Decimal("1e4000"), Decimal("1e4000")),
        (Decimal("0e9999"), 0),
        ("-0e-9999", 0),
    ],
)
def test_a_number_is_exactly_what_was_written(text: str | Decimal, number: int | Decimal) -> None:
    found = number_of(text)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        *(
            (number_of, value)
            for value in ("", "zz", "1e99999", "NaN", "0x10", "1_000", True, None)
        ),
        (number_of, Decimal("NaN")),
        (number_of, "1" * 1001),
        *((double_of, value) for value in ("1e309", Decimal("-1e400"), 10**400)),
        *((truth_of, value) for value in ("perhaps", 2, "", None, Decimal(1))),
        *((text_of, value) for value in (True, None, "\ud800")),
        *((uuid_of, value) for value in ("zz", 5, "", None)),
        *((uuid_of, f"{start}{'0' * 30}") for start in ("+0", "0x", "1_", "\u06600", "{{")),
        *((bytes_of, value) for value in ("***", "AAE", 1, None)),
        *((day_of, value) for value in ("2031-02-30", "20310228", "2031-W09-5", 1, "0000-01-01")),
    ],
)
def test_what_is_no_such_value_is_refused(
    reader: Callable[[object], object], value: object
) -> None:
    with pytest.raises(UnfitValue):
        reader(value)


def test_a_uuid_is_written_in_any_of_its_ways() -> None:
    plain = "7f3c1f0e9c554b0e8f570c5a1f2d9b10"
    whole = "7F3C1F0E-9C55-4b0e-8f57-0c5a1f2d9b10"
    for text in (plain, whole, f"{{{whole}}}", f"urn:uuid:{whole}", f" {whole}\n"):
        assert uuid_of(text).hex == plain


def test_an_integer_is_one_of_its_column() -> None:
    held = range(-(2**31), 2**31)
    assert integer_of("2147483647", held) == 2**31 - 1
    assert integer_of(Decimal("1.5"), held) == Decimal("1.5")
    for beyond in (2**31, -(2**31) - 1, Decimal("2147483647.5"), Decimal("1e400")):
        with pytest.raises(UnfitValue):
            integer_of(beyond, held)


@pytest.mark.parametrize(
    ("sign", "bound"), [("<", 2**53 + 1), (">=", 2**53 + 1), (">", 2**53), ("<=", 2**53)]
)
def test_a_fraction_beyond_doubles_bounds_integers(sign: str, bound: int) -> None:
    assert whole_bound(sign, Decimal(2**53) + Decimal("0.5")) == bound
    assert whole_bound(sign, Decimal("0.5")) == Decimal("0.5")


def test_a_number_is_measured_exactly() -> None:
    huge = 2**1024 - 2**970
    assert size_of(-huge) == huge
    assert size_of(Decimal("-1e-9999")) == Decimal("1e-9999")


def test_what_would_be_taken_for_another_number_is_known() -> None:
    assert is_between_doubles(Decimal(2**53) + Decimal("0.5"))
    assert is_between_doubles(INT64.start - 1)
    assert not is_between_doubles(2**53 + 1)
    assert not is_between_doubles(INT64.stop)
    assert not is_between_doubles(Decimal("0.1"))


@pytest.mark.parametrize(
    ("text", "second", "fraction"),
    [
        ("2031-03-01", datetime.fromisoformat("2031-03-01T00:00:00"), ""),
        ("2031-03-01T12:30", datetime.fromisoformat("2031-03-01T12:30:00"), ""),
        ("2031-03-01 12:30:05.250Z", datetime.fromisoformat("2031-03-01T12:30:05"), "25"),
        ("2031-04-01T05:45:00+05:45", datetime.fromisoformat("2031-04-01T00:00:00"), ""),
        ("2031-04-01t00:00:00z", datetime.fromisoformat("2031-04-01T00:00:00"), ""),
        ("2031-03-31 20:00:00 -04", datetime.fromisoformat("2031-04-01T00:00:00"), ""),
    ],
)  # fmt: skip
def test_a_moment_is_utc(text: str, second: datetime, fraction: str) -> None:
    assert moment_of(text, digits=3) == Moment(second, fraction)


@pytest.mark.parametrize(
    "text",
    [
        "2031-02-30",
        "20310228",
        "20310228T000000",
        "2031-W09-5",
        "2031-02-28T25:00:00Z",
        "2031-02-28T00:00:00+99:00",
        "2031-02-28T00:00:00.1234",
        "0001-01-01T00:00:00+02:00",
        "9999-12-31T23:00:00-02:00",
        "2031-02-28T",
        "now",
        "",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UnfitValue):
        moment_of(text, digits=3)


def test_a_date_without_a_time_stays_a_date() -> None:
    assert day_or_moment("2031-03-01", digits=6) == date(2031, 3, 1)
    assert day_or_moment("2031-03-01T00:00:00Z", digits=6) == date(2031, 3, 1)
    moment = day_or_moment("2031-03-01T00:00:00.000001Z", digits=6)
    assert isinstance(moment, Moment)
    assert moment.wall == datetime.fromisoformat("2031-03-01T00:00:00.000001")
    assert is_day(" 2031-02-30 ")
    assert not is_day("2031-02-30T00:00")
    assert not is_day(20310230)
