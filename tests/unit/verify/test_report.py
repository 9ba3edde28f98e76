"""What a run of `make verify-sources` tells."""

from fetcher_engine import SourceFailure, Stage
from tests.verify.owners import StatementRefused
from tests.verify.report import Mistakes, NotVerified, Report


def found(what: Exception) -> None:
    raise what


def test_a_report_is_good_when_nothing_failed() -> None:
    assert Report().is_good is False
    report = Report()
    with report.check("rows") as details:
        details.append("5 rows")
    with report.check("cancel"):
        found(NotVerified("no right to see it"))
    assert report.is_good
    assert report.text() == ("rows    passed   5 rows\ncancel  skipped  no right to see it")


def test_failures_are_told_with_what_was_found_and_no_servers_words() -> None:
    report = Report()
    with report.check("types"):
        found(Mistakes(*(f"type {number}" for number in range(12))))
    with report.check("connect"):
        found(SourceFailure(Stage.TLS, "expired"))
    with report.check("own tables"):
        found(StatementRefused())
    assert not report.is_good
    lines = report.text().splitlines()
    assert lines[0].endswith("type 8; type 9; and 2 more")
    assert lines[1].endswith("FAILED   stage tls, reason expired")
    assert lines[2].endswith("the server refused a statement that prepares this check")
