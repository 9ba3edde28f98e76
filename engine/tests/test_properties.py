"""The bytes depend on the data alone (design section 5)."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetcher_engine import (
    Batch,
    EncodedBatch,
    ExtractionSummary,
    Limits,
    RowBatch,
    RowEncoder,
    StreamRequest,
)
from fetcher_engine.memory import MemorySource

from .hosts import Host
from .loops import AsyncioLoop, TrampolineLoop, TrioLoop

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(), "x": VALUES, "é": VALUES}), max_size=12)
TABLES = st.dictionaries(st.sampled_from(["t", "u", "é", "T"]), ROWS, min_size=1)
DATA = st.dictionaries(st.sampled_from(["a", "b", "z", "Ω"]), TABLES, min_size=1)


def as_batch(table: str, rows: list[dict[str, Any]], *, encoded: bool) -> Batch:
    if not encoded:
        return RowBatch(table, rows)
    pieces = list(RowEncoder(source="s", table=table).encode(rows))
    return EncodedBatch(table, b",".join(data for data, _ in pieces), len(rows))


def make_source(tables: dict[str, list[dict[str, Any]]], draw: Any, loop: Any) -> MemorySource:
    """A source that cuts its rows anywhere, in either form, and pauses as long as it likes."""
    plans = {
        table: draw(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12))
        for table in tables
    }
    pauses = iter(draw(st.lists(st.integers(0, 5), max_size=40)))

    def batches(request: StreamRequest) -> Iterator[Batch]:
        for table in sorted(request.tables):
            rest = list(tables[table])
            for size, encoded in plans[table]:
                yield as_batch(table, rest[:size], encoded=encoded)
                rest = rest[size:]
            yield as_batch(table, rest, encoded=False)

    async def pause() -> None:
        for _ in range(next(pauses, 0)):
            await loop.pause()

    source = MemorySource.of_rows({t: [{"id": 0, "x": 0, "é": 0}] for t in tables})
    source.batches = batches
    source.before_test = source.before_query = source.before_batch = pause
    return source


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    DATA,
    st.data(),
    st.sampled_from([TrampolineLoop, AsyncioLoop, TrioLoop]),
    st.integers(1, 5),
)
def test_same_bytes_for_any_timing_of_the_steps_and_any_batches(
    data: dict[str, Any], drawn: Any, loop_class: Any, max_concurrency: int
) -> None:
    loop = loop_class()
    host = Host(
        {name: make_source(tables, drawn.draw, loop) for name, tables in data.items()},
        loop.concurrency,
        {"limits": Limits(max_concurrency=max_concurrency)},
    )
    received = bytearray()

    async def write(piece: bytes | memoryview) -> None:
        received.extend(piece)

    async def main() -> ExtractionSummary:
        return await host.engine.stream_extraction(await host.plan_all(), write)

    summary: ExtractionSummary = loop.run(main)
    expected = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert bytes(received) == expected
    assert summary.size_bytes == len(expected)
    assert summary.sha256 == hashlib.sha256(expected).hexdigest()
    assert summary.row_counts == {
        name: sum(map(len, tables.values())) for name, tables in data.items()
    }
    assert set(host.close_counts()) == {1}
