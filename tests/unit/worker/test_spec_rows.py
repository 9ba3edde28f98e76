"""No row of the specification's test tables is without a test (spec worker-and-events 10.3, 12)."""

import pytest

from tests.spec_rows import rows_beside, untested

ROWS = rows_beside(__file__)

ROWS_OF_PART = {
    "10.3": 23,
    "12.1": 18,
    "12.2": 15,
    "12.3": 34,
    "12.4": 9,
    "12.5": 12,
    "12.6": 17,
    "12.7": 9,
    "12.8": 18,
}
"""As many as the tables of the specification have."""

SOURCES = ("design.md ", "decisions-on-spec.md ", "spec ")

NOT_YET = {"issue 8"}
"""Issues that bring the rest of what some rows are about: tenants."""


def test_every_part_has_the_rows_of_the_specification() -> None:
    assert {part: len(rows) for part, rows in ROWS.items()} == ROWS_OF_PART
    told = [row["row"] for rows in ROWS.values() for row in rows]
    assert len(set(told)) == len(told)
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
