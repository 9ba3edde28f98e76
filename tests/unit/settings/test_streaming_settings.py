"""STREAMING_* of the reference: checked, though only two have an effect (spec 2.4)."""

import pytest

from fetcher.settings import Role, Settings
from fetcher.settings.fields import NoEffect
from tests.unit.settings.test_loading import WORKER, load, refusals


def test_brokers_are_accepted_and_not_needed() -> None:
    assert load(Role.WORKER, **WORKER).streaming_brokers == ""
    assert load(Role.WORKER, **WORKER, STREAMING_BROKERS="a:9092").streaming_brokers == "a:9092"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("STREAMING_BATCH_LINGER_MS", "-1"),
        ("STREAMING_BATCH_MAX_BYTES", "0"),
        ("STREAMING_MAX_BUFFERED_RECORDS", "x"),
        ("STREAMING_COMPRESSION", "zip"),
        ("STREAMING_RECORD_RETRIES", "-1"),
        ("STREAMING_RECORD_DELIVERY_TIMEOUT_S", "0"),
        ("STREAMING_REQUIRED_ACKS", "some"),
        ("STREAMING_CB_FAILURE_RATIO", "1.1"),
        ("STREAMING_CB_MIN_REQUESTS", "-1"),
        ("STREAMING_CB_TIMEOUT_S", "x"),
        ("STREAMING_CLOSE_TIMEOUT_S", "0"),
        ("STREAMING_EVENT_POLICIES", "job.completed.enabled=true,job.failed=false"),
        ("STREAMING_EVENT_POLICIES", "job.completed.color=red"),
    ],
)
def test_what_cannot_be_right_stops_the_start_by_name(name: str, text: str) -> None:
    [problem] = refusals({**WORKER, name: text}, Role.WORKER)
    assert problem.startswith(f"{name}: ")
    assert any(isinstance(m, NoEffect) for m in Settings.model_fields[name.lower()].metadata)


def test_policies_of_the_reference_are_accepted() -> None:
    text = "job.completed.enabled=true, job.failed.outbox=always,"
    assert load(STREAMING_EVENT_POLICIES=text).streaming_event_policies == text
