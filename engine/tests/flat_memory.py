"""Run in a process of its own: extract so many MiB, then print by how much its memory has grown.

usage: python -m tests.flat_memory stream|store encoded|rows trampoline|asyncio|trio <mebibytes>
"""

import resource
import sys
from collections.abc import Callable, Iterator

from fetcher_engine import (
    Batch,
    EncodedBatch,
    ExtractionResult,
    ExtractionSummary,
    Limits,
    ResultReference,
    RowBatch,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import MemorySource

from .hosts import Host
from .loops import AnyLoop, AsyncioLoop, TrampolineLoop, TrioLoop, running_on

MIB = 1024 * 1024
LOOPS: dict[str, type[AnyLoop]] = {
    "trampoline": TrampolineLoop,
    "asyncio": AsyncioLoop,
    "trio": TrioLoop,
}
ROW = b'{"x":"' + b"y" * 1000 + b'"}'
ROWS_A_BATCH = 500
BATCH = b",".join([ROW] * ROWS_A_BATCH)


def encoded_batch() -> Batch:
    return EncodedBatch("t", bytes(bytearray(BATCH)), ROWS_A_BATCH)


def row_batch() -> Batch:
    """As many bytes as the other, once the Engine has encoded them; no text twice."""
    return RowBatch("t", [{"x": f"{n:06}" + "y" * 994} for n in range(ROWS_A_BATCH)])


BATCHES: dict[str, Callable[[], Batch]] = {"encoded": encoded_batch, "rows": row_batch}


class ForgetfulSink:
    """Counts what it is given."""

    size_bytes = 0

    async def open_result_stream(self, tenant: TenantContext) -> "ForgetfulSink":
        return self

    async def write(self, data: bytes) -> int:
        self.size_bytes += len(data)
        return len(data)

    async def close(self) -> ResultReference:
        return ResultReference(path="nowhere")

    async def abort(self) -> None: ...


def peak_mebibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measure(mode: str, kind: str, loop: AnyLoop, mebibytes: int) -> tuple[int, int]:
    """The growth of the process's peak in MiB, and the result's size in MiB."""
    batches = mebibytes * MIB // len(BATCH) // 4

    def rows(request: StreamRequest) -> Iterator[Batch]:
        for _ in range(batches):
            yield BATCHES[kind]()

    names = ["a", "b", "c", "d"]
    sources = {name: MemorySource.of_rows({"t": [{"x": ""}]}) for name in names}
    sink = ForgetfulSink()
    options = {"result_sink": sink, "limits": Limits(max_result_bytes=4096 * MIB, timeout=3600)}
    host = Host(sources, options=options)

    async def main() -> ExtractionSummary | ExtractionResult:
        plan = await host.plan_all()
        for source in sources.values():
            source.batches = rows
        if mode == "store":
            return await host.engine.execute_extraction(plan)
        return await host.engine.stream_extraction(plan, drop)

    async def drop(piece: bytes | memoryview) -> None:
        await loop.pause()

    before = peak_mebibytes()
    result = loop.run(main)
    size = sink.size_bytes if isinstance(result, ExtractionResult) else result.size_bytes
    return peak_mebibytes() - before, size // MIB


if __name__ == "__main__":
    chosen = LOOPS[sys.argv[3]]()
    with running_on(chosen):
        print(*measure(sys.argv[1], sys.argv[2], chosen, int(sys.argv[4])))
