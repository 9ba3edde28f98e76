"""No row of the specification's test table is without a test (spec datasources 19, cases).

As ``engine/tests/test_spec_rows.py`` does for the Engine, which is a package of its own: its tests
import nothing of ours, and we nothing of theirs.
"""

import pytest

from tests.spec_rows import missing, rows_beside, untested

ROWS = rows_beside(__file__)

ROWS_OF_PART = {
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
}
"""As many as the tables of the specification have, and as many cases as concern a data source."""

SOURCES = ("design.md ", "decisions-on-spec.md ", "issue 4", "spec ")

NOT_YET = {"issue 8"}
"""Issues that bring the rest of what some rows are about: tenants."""


def test_every_part_has_the_rows_of_the_specification() -> None:
    assert {part: len(rows) for part, rows in ROWS.items()} == ROWS_OF_PART
    told = [row["row"] for rows in ROWS.values() for row in rows]
    assert all("→" in row for row in told)


@pytest.mark.parametrize("part", ROWS)
def test_every_row_names_tests_that_exist(part: str) -> None:
    assert untested(ROWS[part]) == ([], [])


@pytest.mark.parametrize("part", ROWS)
def test_row_that_was_changed_or_put_off_says_how_and_by_what(part: str) -> None:
    for row in ROWS[part]:
        assert row.keys() - {"row"} in ({"tests"}, {"tests", "now", "by"}, {"tests", "later"}), row
        assert row.get("now", "changed")
        assert row.get("by", SOURCES[0]).startswith(SOURCES), row
        assert row.get("later", "issue 8") in NOT_YET, row


def test_test_that_is_gone_is_noticed() -> None:
    assert missing("unit/datasources/test_spec_rows.py::test_that_nobody_wrote")
    assert missing("test_nowhere.py::test_anything")
    assert not missing("unit/datasources/test_spec_rows.py::test_test_that_is_gone_is_noticed")
    assert not missing("engine/tests/test_spec_rows.py::test_test_that_is_gone_is_noticed")
