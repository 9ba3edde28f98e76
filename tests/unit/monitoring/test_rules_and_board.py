"""Alerts and board ask for metrics that are there; each alert has its runbook and its test."""

import re

import pytest

from tests.metric_docs import documented
from tests.monitoring import (
    GIVEN_BY_PROMETHEUS,
    RULE_TESTS,
    RUNBOOKS,
    Alert,
    alerts,
    board,
    board_expressions,
    metrics_in,
)

SERIES = {series for family in documented() for series in family.series}
SERIES |= GIVEN_BY_PROMETHEUS
PARTS = ("**Means**: ", "**Look at**: ", "**Do**: ")

SUBJECTS = {
    "FetcherDown",
    "FetcherNotReady",
    "FetcherDeadLetters",
    "FetcherDeadLettersOld",
    "FetcherDeadLettersFull",
    "FetcherOutboxOld",
    "FetcherJobsUndispatched",
    "FetcherQueueLag",
    "FetcherJobsFailing",
    "FetcherLeaseTakeovers",
    "FetcherActorRestarts",
    "FetcherBreakersOpenLong",
    "FetcherBrokerBreakerOpen",
    "FetcherRedisAway",
    "FetcherEventsUnroutable",
    "FetcherReferenceEventsRefused",
    "FetcherHeartbeatLate",
    "FetcherDiskFilling",
    "FetcherSpoolFailing",
    "FetcherSamplesFailing",
    "FetcherAuditUnrecorded",
    "FetcherTenantEventsUnheard",
    "FetcherTenantManagerAway",
    "FetcherTenantsFailing",
    "FetcherTenantsRefused",
}


def runbooks() -> dict[str, str]:
    sections = re.split(r"^## (\w+)$", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def test_the_alerts_are_those_that_an_operator_is_promised() -> None:
    names = [alert.name for alert in alerts()]
    assert len(names) == len(set(names))
    assert set(names) == SUBJECTS


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_an_alert_asks_for_metrics_that_are_served(alert: Alert) -> None:
    asked = metrics_in(alert.expression)
    assert asked
    assert asked <= SERIES


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_an_alert_says_how_bad_it_is_and_where_its_runbook_is(alert: Alert) -> None:
    assert alert.members.keys() == {"severity", "summary", "description", "runbook_url"}
    assert alert.members["severity"] in ("critical", "warning")
    assert alert.members["runbook_url"] == f"docs/runbooks.md#{alert.name.lower()}"
    assert (RULE_TESTS / f"{alert.name}.yml").exists()


def test_every_runbook_is_an_alerts_and_says_what_to_do() -> None:
    assert runbooks().keys() == SUBJECTS
    for name, text in runbooks().items():
        places = [text.find(part) for part in PARTS]
        assert -1 not in places, name
        assert places == sorted(places), name


def test_runbooks_name_metrics_and_alerts_that_exist() -> None:
    text = RUNBOOKS.read_text(encoding="utf-8")
    named = set(re.findall(r"\bfetcher_[a-z_]+\b", text)) - {"fetcher_dlx"}
    assert named
    assert named <= SERIES
    linked = set(re.findall(r"\]\(#(\w+)\)", text))
    assert linked <= {name.lower() for name in SUBJECTS}


def test_each_file_of_tests_has_a_case_that_fires_and_one_that_does_not() -> None:
    files = sorted(RULE_TESTS.glob("*.yml"))
    assert {file.stem for file in files} == SUBJECTS
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.count(f"- alertname: {file.stem}\n") >= 2, file.name
        assert text.count("exp_alerts: []") == 1, file.name


def test_the_board_asks_for_metrics_that_are_served() -> None:
    expressions = list(board_expressions())
    assert len(expressions) > 40
    for title, expression in expressions:
        asked = metrics_in(expression)
        assert asked, title
        assert asked <= SERIES, title


def test_the_board_shows_every_metric_of_ours() -> None:
    shown = set().union(*(metrics_in(expression) for _, expression in board_expressions()))
    ours = [family for family in documented() if not family.name.startswith(("process_", "python"))]
    assert [family.name for family in ours if not shown & set(family.series)] == []


def test_panels_have_places_and_ids_of_their_own() -> None:
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (a, b) (rate(x_total{c="d_e"}[5m])) > 0', {"x_total"}),
        ("a_b / ignoring (code) group_left () sum(c_d) and e > 5 * 86400", {"a_b", "c_d", "e"}),
        ("histogram_quantile(0.99, sum by (le) (rate(h_bucket[10m])))", {"h_bucket"}),
    ],
)
def test_names_are_told_from_the_rest_of_an_expression(expression: str, names: set[str]) -> None:
    assert metrics_in(expression) == names
