"""The request hash: spec rest-api 9.4 with its vectors, design section 6 for the options."""

import json
from collections.abc import Mapping
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.jobs import JobOptions
from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.request_hash import canonical_number, canonical_request, request_hash

FIELDS = {"sales_db": {"orders": ("id", "total")}}
METADATA = {"source": "acme-reports"}


def parsed(text: str) -> Mapping[str, object]:
    value = parse(text.encode())
    assert isinstance(value, Mapping)
    return value


def test_the_first_vector() -> None:
    assert canonical_request(FIELDS, None, METADATA) == (
        '{"dataRequest":{"mappedFields":{"sales_db":{"orders":["id","total"]}}},'
        '"metadata":{"source":"acme-reports"}}'
    )
    assert (
        request_hash(FIELDS, None, METADATA)
        == "79dcd116bf0a2a59b828e759968cc080184d850885d486078e1fbdceaba9e0bf"
    )


def test_the_second_vector() -> None:
    fields = {"sales_db": {"orders": ["id", "total"]}, "crm_db": {"people": ["id"]}}
    filters = {
        "sales_db": {"orders": {"total": {"in": ["A&B", "<none>"], "gte": [Decimal("10.5")]}}}
    }
    metadata = parsed('{"source":"acme-reports","batch":7}')
    assert canonical_request(fields, filters, metadata) == (
        '{"dataRequest":{"mappedFields":{"crm_db":{"people":["id"]},'
        '"sales_db":{"orders":["id","total"]}},'
        '"filters":{"sales_db":{"orders":{"total":{"gte":[10.5],'
        '"in":["A\\u0026B","\\u003cnone\\u003e"]}}}}},'
        '"metadata":{"batch":7,"source":"acme-reports"}}'
    )
    assert (
        request_hash(fields, filters, metadata)
        == "ff06883234a615ba789cedec9b3f6e845205f48a3031d3bcd87b0fcdc71ec70c"
    )


def test_absent_and_empty_parts_are_the_same() -> None:
    expected = '{"dataRequest":{"mappedFields":{}}}'
    assert canonical_request({}, None, None) == expected
    assert canonical_request({}, {}, {}, JobOptions()) == expected


def test_operators_have_a_fixed_order_and_empty_ones_are_left_out() -> None:
    condition = {
        "not_null": (True,),
        "like": ("a%",),
        "ne": (1,),
        "nin": (),
        "in": (2,),
        "between": (1, 2),
        "lte": (3,),
        "lt": (4,),
        "gte": (5,),
        "gt": (6,),
        "eq": (7,),
    }
    text = canonical_request({}, {"db": {"t": {"f": condition}}}, None)
    operators = json.loads(text)["dataRequest"]["filters"]["db"]["t"]["f"]
    assert list(operators) == [
        "eq", "gt", "gte", "lt", "lte", "between", "in", "ne", "like", "not_null",
    ]  # fmt: skip


def test_what_the_reference_keeps_is_kept() -> None:
    filters: dict[str, object] = {"b": {}, "a": {"t": {"f": {"eq": []}}, "n": None}, "c": None}
    assert canonical_request({"x": None, "a": {"t": None}}, filters, None) == (
        '{"dataRequest":{"mappedFields":{"a":{"t":null},"x":null},'
        '"filters":{"a":{"n":null,"t":{"f":{}}},"b":{},"c":null}}}'
    )


def test_the_order_of_keys_does_not_count_and_that_of_arrays_does() -> None:
    first = request_hash({"a": {"t": ["x"], "s": ["y"]}, "b": {"t": ["x"]}}, None, {"k": 1, "j": 2})
    second = request_hash(
        {"b": {"t": ["x"]}, "a": {"s": ["y"], "t": ["x"]}}, None, {"j": 2, "k": 1}
    )
    assert first == second
    assert request_hash({"a": {"t": ["x", "y"]}}, None, None) != request_hash(
        {"a": {"t": ["y", "x"]}}, None, None
    )


def test_nested_metadata_is_sorted_at_every_level() -> None:
    metadata = parsed('{"z":[{"b":1,"a":{"d":1,"c":2}}],"é":1,"Z":"\\u0001<\\u2028"}')
    assert canonical_request({}, None, metadata) == (
        '{"dataRequest":{"mappedFields":{}},"metadata":'
        '{"Z":"\\u0001\\u003c\\u2028","z":[{"a":{"c":2,"d":1},"b":1}],"é":1}}'
    )


def test_options_stand_after_the_filters_without_their_defaults() -> None:
    options = JobOptions(
        values="natural",
        bigint="string",
        decimals="string",
        limits={"timeout": 1.5, "maxResultBytes": 10},
    )
    assert canonical_request({}, {"a": {}}, METADATA, options) == (
        '{"dataRequest":{"mappedFields":{},"filters":{"a":{}},'
        '"options":{"bigint":"string","limits":{"maxResultBytes":10,"timeout":1.5},'
        '"values":"natural"}},"metadata":{"source":"acme-reports"}}'
    )
    assert '"options":{"decimals":"number"}' in canonical_request(
        {}, None, None, JobOptions(decimals="number")
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0", "0"),
        ("-0", "-0"),
        ("-0.0", "-0"),
        ("0e5", "0"),
        ("7", "7"),
        ("7.0", "7"),
        ("10.5", "10.5"),
        ("10.50", "10.5"),
        ("0.1", "0.1"),
        ("100", "100"),
        ("1e2", "100"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1000000000000000000000", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("0.000001", "0.000001"),
        ("0.00000123", "0.00000123"),
        ("1e-7", "1e-7"),
        ("0.00000012", "1.2e-7"),
        ("-12.5e-10", "-1.25e-9"),
        ("1e-10", "1e-10"),
        ("9007199254740992", "9007199254740992"),
        # not held by a double: the exact digits (design section 4)
        ("9007199254740993", "9007199254740993"),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("1e400", "1e+400"),
    ],
)
def test_numbers_have_the_layout_of_doubles_and_their_exact_value(number: str, text: str) -> None:
    value = parse(number.encode())
    assert isinstance(value, int | Decimal)
    assert canonical_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shortest_form_of_a_double_is_its_own(number: float) -> None:
    """Judged by JavaScript's rule for the digits, which Python's repr shares."""
    text = canonical_number(Decimal(repr(number)))
    assert float(text) == number
    assert Decimal(text) == Decimal(repr(number))
    plain = 1e-6 <= abs(number) < 1e21 or number == 0
    assert ("e" not in text) == plain
    assert not text.endswith(".0")


@given(
    st.decimals(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
)
def test_two_numbers_share_a_text_only_when_they_are_equal(first: Decimal, second: Decimal) -> None:
    same_sign = first.is_signed() == second.is_signed()
    equal = first == second and (same_sign or bool(first))
    assert (canonical_number(first) == canonical_number(second)) == equal


def test_a_double_that_several_integers_share_keeps_them_apart() -> None:
    # 2**60 and the shortest form of the same double are different integers
    assert canonical_number(2**60) == "1152921504606846976"
    assert canonical_number(1152921504606847000) == "1152921504606847000"


def test_what_is_no_number_is_refused() -> None:
    for number in (Decimal("NaN"), Decimal("Infinity")):
        with pytest.raises(JsonTextError):
            canonical_number(number)
