"""Run in a process of its own: three sources wait for their turn in a FolderSpool.

usage: python -m tests.unit.adapters.local.flat_spool encoded|rows <folder> <mebibytes>

Prints three numbers of MiB: by how much the process's memory has grown, what lay in the folder when
the first source let the others have their turn, and the size of the result.
"""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import trio

from fetcher.adapters.local.spool import FolderSpool
from fetcher.concurrency import TrioConcurrency
from fetcher_engine import (
    Batch,
    ConnectionDescriptor,
    EncodedBatch,
    Engine,
    ExtractionRequest,
    ExtractionSummary,
    Limits,
    RowBatch,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

from .hung_disk import open_in

MIB = 1024 * 1024
ROWS_A_BATCH = 256
WAITING = ("b", "c", "d")


def batch(kind: str) -> Batch:
    """A quarter of a mebibyte, about."""
    rows = [{"x": f"{n:06}" + "y" * 1_009} for n in range(ROWS_A_BATCH)]
    if kind == "rows":
        return RowBatch("t", rows)
    data = b",".join(b'{"x":"%s"}' % row["x"].encode() for row in rows)
    return EncodedBatch("t", data, ROWS_A_BATCH)


class Measurement:
    """One run: the first source gives nothing until the others have given all."""

    def __init__(self, kind: str, folder: Path, mebibytes: int) -> None:
        self.kind = kind
        self.folder = folder
        self.batches = mebibytes
        self.ended = 0
        self.all_ended = trio.Event()
        self.spooled_bytes = 0

    def of_a_waiting_source(self, request: StreamRequest) -> Iterator[Batch]:
        for _ in range(4 * self.batches // len(WAITING)):
            yield batch(self.kind)
        self.ended += 1
        if self.ended == len(WAITING):
            self.all_ended.set()

    async def let_others_go_first(self) -> None:
        await self.all_ended.wait()
        if not self.spooled_bytes:
            self.spooled_bytes = sum(os.fstat(file).st_size for file in open_in(self.folder))

    async def run(self) -> ExtractionSummary:
        first = MemorySource.of_rows({"t": [{"x": "first"}]})
        sources = {"a": first}
        for name in WAITING:
            sources[name] = MemorySource.of_rows({"t": [{"x": ""}]})
        registry, store = MemoryRegistry(), MemoryConnectionStore()
        tenant = TenantContext.new("acme").with_request_id("j1")
        for name, source in sources.items():
            registry.register(name.upper(), MemoryConnectorFactory(source))
            store.put(tenant, ConnectionDescriptor(config_name=name, type=name.upper()))
        engine = Engine(
            registry,
            connection_store=store,
            concurrency=TrioConcurrency(),
            spool=FolderSpool(self.folder),
            limits=Limits(max_result_bytes=4096 * MIB, timeout=3600),
        )
        request = ExtractionRequest(mapped_fields={name: {"t": ["x"]} for name in sources})
        plan = await engine.plan_extraction(tenant, request)
        first.before_batch = self.let_others_go_first
        for name in WAITING:
            sources[name].batches = self.of_a_waiting_source
        return await engine.stream_extraction(plan, _drop)


async def _drop(piece: bytes | memoryview) -> None:
    await trio.lowlevel.checkpoint()


def peak_mebibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(kind: str, folder: Path, mebibytes: int) -> None:
    measurement = Measurement(kind, folder, mebibytes)
    before = peak_mebibytes()
    summary = trio.run(measurement.run)
    growth = peak_mebibytes() - before
    print(growth, measurement.spooled_bytes // MIB, summary.size_bytes // MIB)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
