"""No row of the specification's test tables is without a test.

As ``engine/tests/test_spec_rows.py`` does for the Engine, which is a package of its own: its tests
import nothing of ours, and we nothing of theirs.
"""

import pytest

from tests.spec_rows import missing, registers, untested

ROWS_OF_PART = {
    # spec rest-api 17, without the rows of tenants; of the table of cases those of HTTP (21 to 25)
    "api": {
        "17.1": 36,
        "17.2": 9,
        "17.3": 40,
        "17.4": 22,
        "17.5": 31,
        "17.6": 15,
        "17.7": 5,
        "cases": 5,
    },
    # spec datasources 19, and as many cases as concern a data source
    "datasources": {
        "19.1": 16,
        "19.2": 11,
        "19.3": 12,
        "19.4": 11,
        "19.5": 17,
        "19.6": 10,
        "19.7": 32,
        "19.8": 11,
        "19.9": 8,
        "19.10": 10,
        "19.11": 17,
        "cases": 18,
    },
    # spec configuration-and-operations 17: health, readiness, the drain
    "operations": {"17.5": 30, "17.6": 7, "17.7": 7, "17.8": 37},
    # the same: settings and the start
    "settings": {"17.1": 21, "17.2": 16, "17.3": 14, "17.4": 16, "17.9": 14},
    # spec worker-and-events 10.3 and 12
    "worker": {
        "10.3": 23,
        "12.1": 18,
        "12.2": 15,
        "12.3": 34,
        "12.4": 9,
        "12.5": 12,
        "12.6": 17,
        "12.7": 9,
        "12.8": 18,
    },
}
"""As many as the tables of the specification have."""

SOURCES = ("design.md ", "decisions-on-spec.md ", "issue 4", "spec ", "docs/decisions/")

NOT_YET = {"issue 8"}
"""Issues that bring the rest of what some rows are about: tenants."""

REGISTERS = registers()

each_part = pytest.mark.parametrize(
    ("register", "part"), [(name, part) for name, parts in ROWS_OF_PART.items() for part in parts]
)


def test_every_part_has_the_rows_of_the_specification() -> None:
    assert {
        name: {part: len(rows) for part, rows in parts.items()} for name, parts in REGISTERS.items()
    } == ROWS_OF_PART


@each_part
def test_every_row_is_told_once(register: str, part: str) -> None:
    told = [row["row"] for row in REGISTERS[register][part]]
    assert len(set(told)) == len(told)


@each_part
def test_every_row_names_tests_that_exist(register: str, part: str) -> None:
    assert untested(REGISTERS[register][part]) == ([], [])


@each_part
def test_row_that_was_changed_or_put_off_says_how_and_by_what(register: str, part: str) -> None:
    for row in REGISTERS[register][part]:
        assert row.keys() - {"row"} in ({"tests"}, {"tests", "now", "by"}, {"tests", "later"}), row
        assert row.get("now", "changed")
        assert row.get("by", SOURCES[0]).startswith(SOURCES), row
        assert row.get("later", "issue 8") in NOT_YET, row


def test_test_that_is_gone_is_noticed() -> None:
    assert missing("unit/test_spec_rows.py::test_that_nobody_wrote")
    assert missing("test_nowhere.py::test_anything")
    assert not missing("unit/test_spec_rows.py::test_test_that_is_gone_is_noticed")
    assert not missing("engine/tests/test_spec_rows.py::test_test_that_is_gone_is_noticed")
