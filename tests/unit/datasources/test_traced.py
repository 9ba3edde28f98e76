"""The spans of a source end as the source did, wherever that happened."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing

from fetcher.datasources.traced import EngineSpans, TracedConnector
from fetcher_engine import (
    EngineError,
    ErrorCategory,
    RowBatch,
    SourceFailure,
    SourceNotes,
    Stage,
    StreamRequest,
)
from fetcher_engine.memory import MemoryConnector, MemorySource
from tests.unit.datasources.requested import a_connection
from tests.unit.recorded_spans import RecordedSpans

REQUEST = StreamRequest(config_name="src", tables={"a": ("x",)})
CANARY = "canary-of-a-database"
ROWS = {"a": [{"x": 1}, {"x": 2}]}
REFUSED = SourceFailure(Stage.QUERY, "statement_timeout", table=CANARY)


def traced(source: MemorySource, spans: RecordedSpans) -> TracedConnector:
    inner = MemoryConnector(source, a_connection())  # type: ignore[arg-type] # no descriptor is asked
    return TracedConnector(inner, spans.tracer, "POSTGRESQL", "src")


async def read(connector: TracedConnector, *, batches: int | None = None) -> list[object]:
    """All, or so many batches and then no more, as the Engine does it."""
    found: list[object] = []
    try:
        await connector.test_connection()
        await connector.discover_schema()
        stream = await connector.open_stream(REQUEST)
        try:
            while batches is None or len(found) < batches:
                batch = await stream.next_batch()
                if batch is None:
                    break
                assert isinstance(batch, RowBatch)
                found += batch.rows
        finally:
            await stream.aclose()
    finally:
        await connector.close()
    return found


async def read_refused(refusal: EngineError) -> None:
    await trio.lowlevel.checkpoint()
    raise refusal


async def endings_of(source: MemorySource, *, batches: int | None = None) -> dict[str, str]:
    spans = RecordedSpans()
    with suppress(SourceFailure, OSError):
        await read(traced(source, spans), batches=batches)
    assert CANARY not in spans.told()
    return {name.rpartition(".")[2]: ending for name, ending in spans.endings().items()}


async def test_a_query_that_is_read_to_its_end_is_well() -> None:
    assert await endings_of(MemorySource.of_rows(ROWS)) == {
        "connect": "ok",
        "get_database_schema": "ok",
        "query": "ok",
    }


@pytest.mark.parametrize(
    ("step", "ended"),
    [
        ("test_error", {"connect": "statement_timeout"}),
        ("discovery_error", {"connect": "ok", "get_database_schema": "statement_timeout"}),
        ("query_error", {"query": "statement_timeout"}),
        ("stream_error", {"query": "statement_timeout"}),
        ("close_error", {"query": "statement_timeout"}),
    ],
)
async def test_what_fails_at_a_step_fails_its_span(step: str, ended: dict[str, str]) -> None:
    source = MemorySource.of_rows(ROWS, rows_per_batch=1)
    source.stream_fail_after = 1
    setattr(source, step, REFUSED)
    endings = await endings_of(source)
    assert {name: endings[name] for name in ended} == ended


async def test_a_text_of_the_driver_is_told_by_its_type() -> None:
    source = MemorySource.of_rows(ROWS)
    source.stream_error = OSError(CANARY)
    assert (await endings_of(source))["query"] == "OSError"


async def test_a_query_whose_rows_nobody_takes_was_given_up() -> None:
    source = MemorySource.of_rows(ROWS, rows_per_batch=1)
    assert (await endings_of(source, batches=1))["query"] == "cancelled"


@pytest.mark.parametrize(
    "step", ["before_test", "before_discovery", "before_query", "before_batch"]
)
async def test_what_is_cancelled_is_no_failure(
    autojump_clock: trio.testing.MockClock, step: str
) -> None:
    source, spans = MemorySource.of_rows(ROWS), RecordedSpans()
    setattr(source, step, trio.sleep_forever)
    with trio.move_on_after(1):
        await read(traced(source, spans))
    last = list(spans.endings().values())[-1]
    assert last == "cancelled"
    assert set(spans.endings().values()) <= {"ok", "cancelled"}


async def test_notes_are_handed_on_where_there_are_any() -> None:
    source, spans = MemorySource.of_rows(ROWS), RecordedSpans()
    source.notes = SourceNotes(replaced_characters=7)
    stream = await traced(source, spans).open_stream(REQUEST)
    assert stream.notes() == source.notes  # type: ignore[attr-defined] # the memory's has them


@pytest.mark.parametrize(
    ("operation", "ending"),
    [
        (trio.lowlevel.checkpoint, "ok"),
        (trio.sleep_forever, "cancelled"),
        (partial(read_refused, EngineError(ErrorCategory.TIMEOUT, CANARY)), "timeout"),
    ],
)
async def test_the_engines_own_operations_end_as_they_did(
    autojump_clock: trio.testing.MockClock, operation: Callable[[], Awaitable[None]], ending: str
) -> None:
    spans = RecordedSpans()
    with (
        trio.move_on_after(1),
        suppress(EngineError),
        EngineSpans(spans.tracer).start_span("engine.extraction.execute"),
    ):
        await operation()
    assert spans.endings() == {"engine.extraction.execute": ending}
    assert CANARY not in spans.told()
