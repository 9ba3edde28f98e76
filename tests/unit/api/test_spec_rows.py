"""No row of the specification's test tables is without a test (spec rest-api 17)."""

import pytest

from tests.spec_rows import rows_beside, untested

ROWS = rows_beside(__file__)

ROWS_OF_PART = {
    "17.1": 36,
    "17.2": 9,
    "17.3": 40,
    "17.4": 22,
    "17.5": 31,
    "17.6": 11,
    "17.7": 5,
    "cases": 5,
}
"""As many as the tables and lists of the specification have, without those of tenants; of the table
of cases those of HTTP (21 to 25)."""

SOURCES = ("design.md ", "decisions-on-spec.md ", "spec ")


def test_every_part_has_the_rows_of_the_specification() -> None:
    assert {part: len(rows) for part, rows in ROWS.items()} == ROWS_OF_PART
    told = [row["row"] for rows in ROWS.values() for row in rows]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("part", ROWS)
def test_every_row_names_tests_that_exist(part: str) -> None:
    assert untested(ROWS[part]) == ([], [])


@pytest.mark.parametrize("part", ROWS)
def test_row_that_was_changed_says_how_and_by_what(part: str) -> None:
    for row in ROWS[part]:
        assert row.keys() - {"row"} in ({"tests"}, {"tests", "now", "by"}), row
        assert row.get("now", "changed")
        assert row.get("by", SOURCES[0]).startswith(SOURCES), row
