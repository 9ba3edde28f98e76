"""A collector that is away, slow or broken delays nobody, fills no memory and is told of safely."""

import logging
import threading
from collections.abc import Sequence
from typing import ClassVar

import pytest
import trio
import trio.testing
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from fetcher.adapters.telemetry import export
from fetcher.adapters.telemetry.export import BATCH, MAX_QUEUED, Collector, Origin, open_traces
from fetcher.logs import configure_logs

CANARY = "canary-of-a-collector"
COLLECTOR = Collector(base_url=f"http://{CANARY}.test:1", headers={"api-key": CANARY})
ORIGIN = Origin(
    service_name="fetcher", service_version="1", environment="test", library_name="fetcher"
)
NEVER_BY_ITSELF_MS = 3_600_000
"""Spans are sent when a batch is full, or at the end."""


class FakeExporter:
    """What the library sends with: made by the adapter, steered by the test."""

    made: ClassVar["list[FakeExporter]"]
    failure: Exception | None = None
    result = SpanExportResult.SUCCESS
    answers = threading.Event()

    def __init__(self, **_: object) -> None:
        self.names: list[str] = []
        self.asked = threading.Event()
        self.is_shut_down = False
        type(self).made.append(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.answers.wait()
        if self.failure is not None:
            raise self.failure
        self.names += [span.name for span in spans]
        return self.result

    def shutdown(self) -> None:
        self.is_shut_down = True

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeExporter]:
    """One that answers at once; ``answers.clear()`` makes it slow."""

    class Exporter(FakeExporter):
        made: ClassVar[list[FakeExporter]] = []
        answers = threading.Event()

    Exporter.answers.set()
    monkeypatch.setattr(export, "OTLPSpanExporter", Exporter)
    return Exporter


async def trace(count: int) -> None:
    async with open_traces(COLLECTOR, ORIGIN, pause_ms=NEVER_BY_ITSELF_MS) as tracer:
        for number in range(count):
            with tracer.span(f"span-{number}"):
                pass


async def test_what_is_left_at_the_end_is_sent(fake: type[FakeExporter]) -> None:
    await trace(BATCH + 3)
    (exporter,) = fake.made
    assert len(exporter.names) == BATCH + 3
    assert exporter.is_shut_down


async def test_a_collector_that_never_answers_holds_up_neither_spans_nor_the_end(
    fake: type[FakeExporter], autojump_clock: trio.testing.MockClock
) -> None:
    """It would be waited for without end, were anybody of ours to wait for it."""
    fake.answers.clear()
    started_at = trio.current_time()
    try:
        await trace(2 * BATCH)
        assert trio.current_time() - started_at == export.FLUSH_SECONDS
        assert fake.made[0].names == []
    finally:
        fake.answers.set()


async def test_only_so_many_spans_wait_and_the_oldest_make_way(fake: type[FakeExporter]) -> None:
    fake.answers.clear()
    async with open_traces(COLLECTOR, ORIGIN, pause_ms=NEVER_BY_ITSELF_MS) as tracer:
        for number in range(BATCH):
            with tracer.span(f"first-{number}"):
                pass
        (exporter,) = fake.made
        await trio.to_thread.run_sync(exporter.asked.wait)
        for number in range(MAX_QUEUED + 500):
            with tracer.span(f"span-{number}"):
                pass
        fake.answers.set()
    assert len(exporter.names) <= MAX_QUEUED + BATCH
    assert exporter.names[-1] == f"span-{MAX_QUEUED + 499}"


@pytest.mark.parametrize(
    ("failure", "result"),
    [
        (None, SpanExportResult.FAILURE),
        (ConnectionError(f"http://{CANARY} refused"), SpanExportResult.SUCCESS),
    ],
)
async def test_lost_spans_are_told_once_without_a_word_of_the_collector(
    fake: type[FakeExporter],
    capsys: pytest.CaptureFixture[str],
    failure: Exception | None,
    result: SpanExportResult,
) -> None:
    configure_logs(env_name="production", level="debug", encoding="")
    fake.failure, fake.result = failure, result
    await trace(3 * BATCH)
    said = capsys.readouterr()
    assert said.out.count("traces_not_exported") == 1
    assert CANARY not in said.out + said.err


async def test_the_librarys_own_exporter_says_nothing_of_a_collector_that_is_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    configure_logs(env_name="production", level="debug", encoding="")
    monkeypatch.setattr(export, "EXPORT_SECONDS", 0.1)
    await trace(1)
    said = capsys.readouterr()
    assert "traces_not_exported" in said.out
    assert CANARY not in said.out + said.err
