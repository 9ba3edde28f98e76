"""Of what an outage makes every tenant say, a few are told."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import structlog

import fetcher
from fetcher.log_repeats import SAID_BY_ALL, FewOfMany
from fetcher.logs import configure_logs


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def told(few: FewOfMany, event: str, **facts: object) -> dict[str, object] | None:
    try:
        return dict(few(None, "warning", {"event": event, **facts}))
    except structlog.DropEvent:
        return None


def test_ten_tenants_a_minute_are_told_of_and_how_many_were_left_out() -> None:
    clock = Clock()
    few = FewOfMany(clock)
    tenants = [f"t{number}" for number in range(200)]
    lines = [told(few, "consumer_lost", code="unavailable", tenant_id=each) for each in tenants]
    assert [line is not None for line in lines] == [True] * 10 + [False] * 190
    clock.seconds = 59.9
    assert told(few, "consumer_lost", code="unavailable", tenant_id="t300") is None
    clock.seconds = 60
    again = told(few, "consumer_lost", code="unavailable", tenant_id="t300")
    assert again == {
        "event": "consumer_lost",
        "code": "unavailable",
        "tenant_id": "t300",
        "left_out": 191,
    }
    clock.seconds = 120
    line = told(few, "consumer_lost", code="unavailable", tenant_id="t1")
    assert line is not None
    assert "left_out" not in line


def test_one_tenants_many_requests_leave_lines_to_others() -> None:
    few = FewOfMany(Clock())
    lines = [told(few, "tenant_not_entered", tenant_id="loud") for _ in range(1000)]
    assert [line is not None for line in lines] == [True] + [False] * 999
    assert told(few, "tenant_not_entered", tenant_id="other") is not None


def test_another_code_or_another_kind_is_news() -> None:
    few = FewOfMany(Clock())
    for code, what in product(("unavailable", "refused"), ("jobs", "queue")):
        assert told(few, "sample_failed", code=code, what=what, tenant_id="t") is not None
        assert told(few, "sample_failed", code=code, what=what, tenant_id="t") is None


def test_what_concerns_one_job_is_told_each_time() -> None:
    few = FewOfMany(Clock())
    lines = [told(few, "lease_ran_out", tenant_id="t", job_id=str(each)) for each in range(100)]
    assert None not in lines


def test_each_of_them_is_a_record_that_there_is() -> None:
    sources = [path.read_text() for path in Path(fetcher.__file__).parent.rglob("*.py")]
    source = "".join(text for text in sources if "SAID_BY_ALL" not in text)
    assert [name for name in SAID_BY_ALL if f'"{name}"' not in source] == []


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(("has_tenants", "lines"), [(True, 1), (False, 3)])
def test_only_a_process_with_tenants_leaves_any_out(
    capsys: pytest.CaptureFixture[str], has_tenants: bool, lines: int
) -> None:
    configure_logs(env_name="production", level="", encoding="", has_tenants=has_tenants)
    with structlog.contextvars.bound_contextvars(tenant_id="acme"):
        for tries in range(3):
            structlog.get_logger().warning("consumer_lost", code="unavailable", tries=tries)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["tries"] for each in told] == list(range(lines))
    assert {each["tenant_id"] for each in told} == {"acme"}
