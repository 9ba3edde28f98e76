"""docs/performance.md is made of the lines beside it, and leaves no row of the design out."""

from typing import Any

import pytest

from benchmarks import design_table
from benchmarks.binding import binds
from benchmarks.document import LINES, PAGE, judged, merged, read_lines
from benchmarks.judging import judge
from benchmarks.performance_page import page
from benchmarks.reasons import reason_for
from benchmarks.tables import number, table
from benchmarks.verdicts import verdict_of
from tests.e2e.documented import ROOT


def test_the_page_is_what_its_lines_make() -> None:
    """Else: ``python -m benchmarks.document``."""
    assert PAGE.read_text(encoding="utf-8") == page(read_lines(LINES))


def test_committed_verdicts_follow_from_what_was_measured() -> None:
    lines = read_lines(LINES)
    assert judge(lines)
    assert judged(lines) == lines


def test_a_verdict_is_made_anew_and_those_of_others_stay() -> None:
    theirs = a_verdict(figure="faults.lost", row="faults")
    former = a_verdict(figure="create_job.sqlite", holds=False)
    measured = {"figure": "http.create_job.sqlite", "p99_ms": 12.0}
    found = judged([former, measured, theirs])
    assert [line["figure"] for line in found] == [
        "http.create_job.sqlite",
        "faults.lost",
        "create_job.sqlite",
    ]
    assert found[-1]["holds"] is True


@pytest.mark.parametrize("row", design_table.TABLE, ids=lambda row: row.key)
def test_every_row_of_the_design_has_figures_or_tests(row: design_table.DesignRow) -> None:
    lines = read_lines(LINES)
    verdicts = [found for line in lines if (found := verdict_of(line)) is not None]
    of_row = [verdict for verdict in verdicts if verdict.row == row.key]
    assert of_row or row.proof
    assert all((ROOT / path).is_file() for path in row.proof)
    told = (ROOT / "docs" / row.page).read_text(encoding="utf-8")
    # by its folder at least
    assert all(path in told or f"`{path.rpartition('/')[0]}`" in told for path in row.proof)
    assert row.figure in PAGE.read_text(encoding="utf-8")


def test_every_verdict_belongs_to_a_row() -> None:
    keys = {row.key for row in design_table.TABLE}
    verdicts = [found for line in read_lines(LINES) if (found := verdict_of(line)) is not None]
    assert {verdict.row for verdict in verdicts} <= keys


def a_verdict(**members: Any) -> dict[str, Any]:
    verdict = {"figure": "slowed.together", "row": "slowed", "value": 4, "unit": "s"}
    return {**verdict, "target": "≤ 1.3 ×", "holds": True, **members}


def test_what_does_not_hold_is_told_with_its_reason() -> None:
    good, bad = page([a_verdict()]), page([a_verdict(holds=False)])
    assert "Nothing in this run." in good
    assert "**no**" not in good
    assert f"- `slowed.together`: {reason_for('slowed.together')}" in bad
    assert "| **no** |" in bad


def test_the_reason_is_that_of_the_longest_name() -> None:
    assert reason_for("mongodb.sparse") != reason_for("mongodb.mixed") == reason_for("mongodb")
    with pytest.raises(ValueError, match="empty"):
        reason_for("mongo")


def test_a_figure_measured_anew_takes_the_place_of_the_former() -> None:
    before = [{"figure": "a", "x": 1}, {"figure": "b", "x": 2}]
    new = [{"figure": "b", "x": 3}, {"figure": "c", "x": 4}]
    assert [line["x"] for line in merged(before, new)] == [1, 3, 4]


@pytest.mark.parametrize(
    ("server", "ours", "who"),
    [
        (2.7, 2.2, "the server's session"),
        (2.0, 2.5, "the client or job"),
        (2.4, 2.1, "both alike"),
    ],
)
def test_whoever_needs_more_cpu_binds(server: float, ours: float, who: str) -> None:
    assert binds(server, ours) == who


def test_tables_have_columns_of_one_width() -> None:
    assert table(("a", "bb"), [("x|y", "1")]) == "| a    | bb |\n| ---- | -- |\n| x\\|y | 1  |"
    assert [number(each) for each in (248_123.4, 999.5, 1.25, 4)] == [
        "248 123",
        "999.5",
        "1.25",
        "4",
    ]
