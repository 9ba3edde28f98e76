"""No point of the pipeline holds the result (design section 4, step 5)."""

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetcher_engine import Batch, EncodedBatch, Limits, RowBatch, StreamRequest
from fetcher_engine.memory import MemorySource

from .hosts import Host
from .loops import AsyncioLoop, TrampolineLoop, TrioLoop

MIB = 1024 * 1024


def encoded(request: StreamRequest) -> Iterator[Batch]:
    """8 MiB in batches of 256 KiB, each made when it is asked for."""
    for _ in range(32):
        yield EncodedBatch("t", b'{"x":"' + b"y" * (MIB // 4) + b'"}', 1)


def rows(request: StreamRequest) -> Iterator[Batch]:
    """8 MiB as rows of 4 KiB."""
    for _ in range(32):
        yield RowBatch("t", [{"x": "y" * 4096} for _ in range(64)])


@pytest.mark.parametrize("batches", [encoded, rows], ids=["encoded", "rows"])
@pytest.mark.parametrize("loop_class", [TrampolineLoop, AsyncioLoop, TrioLoop])
def test_memory_stays_flat(loop_class: type, batches: object) -> None:
    loop = loop_class()
    names = [f"s{i}" for i in range(6)]
    sources = {n: MemorySource.of_rows({"t": [{"x": ""}]}) for n in names}
    limits = Limits(max_result_bytes=1024 * MIB)
    host = Host(sources, loop.concurrency, {"limits": limits})
    written = 0

    async def write(piece: bytes | memoryview) -> None:
        nonlocal written
        written += len(piece)
        await loop.pause()

    async def main() -> None:
        plan = await host.plan_all()
        for source in sources.values():
            source.batches = batches  # type: ignore[assignment]  # one of the two above
        tracemalloc.start()
        try:
            await host.engine.stream_extraction(plan, write)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()

    peaks: list[int] = []
    loop.run(main)
    assert written > 48 * MIB
    # up to six hand-offs of 4 MiB, and what four steps have in their hands
    assert peaks[0] < (2 * MIB if loop.concurrency is None else 6 * 4 * MIB + 4 * MIB)


@pytest.mark.parametrize(
    ("mode", "kind", "loop_name"),
    [
        *(
            (m, "encoded", n)
            for m in ("stream", "store")
            for n in ("trampoline", "asyncio", "trio")
        ),
        # a gibibyte to encode takes its time
        ("stream", "rows", "trampoline"),
        ("store", "rows", "asyncio"),
        ("stream", "rows", "trio"),
    ],
)
def test_a_result_of_a_gibibyte_needs_no_more_than_one_of_64_mebibytes(
    mode: str, kind: str, loop_name: str
) -> None:
    growth = {}
    for mebibytes in (64, 1024):
        command = [sys.executable, "-m", "tests.flat_memory", mode, kind, loop_name]
        engine = Path(__file__).parents[1]
        done = subprocess.run(
            [*command, str(mebibytes)],
            cwd=engine,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        growth[mebibytes], size = map(int, done.stdout.split())
        assert size >= mebibytes - 4
    # three hand-offs of 4 MiB, what four steps and the writer hold, and the allocator's own
    assert growth[1024] <= 40
    assert growth[1024] - growth[64] <= 8
