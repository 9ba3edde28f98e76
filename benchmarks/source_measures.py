"""One measurement in a process of its own: ``python -m benchmarks.source_measures SOURCE NAME``.

Prints one JSON object: rows, seconds, CPU seconds of this process, how late its loop was at worst,
peak memory and what it was before the work began.
"""

import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from benchmarks.heartbeat import Measure, report_opened
from benchmarks.sizes import LARGE_TABLE, TABLE
from benchmarks.sources import BenchSource, bench_source
from fetcher.adapters.local.object_folder import open_object_folder
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.bridge import open_asyncio
from fetcher.crypto.sealer import ResultSealer
from fetcher.datasources.engines import RequestEngines, SourceSettings, open_source_engines
from fetcher.datasources.records import descriptor_of
from fetcher.datasources.registry import SourceRegistry
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope
from fetcher.domain.jobs import JobOptions
from fetcher.ports import ObjectStore
from fetcher_engine import EncodedBatch, ExtractionRequest, Limits, StreamRequest, TenantContext

TENANT: Final = TenantContext.new("default")
KEY: Final = bytes(range(32))
IDLE_SECONDS: Final = 3.0
LIMIT_BYTES: Final = 2 * 1024**3


def settings() -> SourceSettings:
    return SourceSettings(
        decrypt=lambda stored, _: stored,
        limits=Limits(max_result_bytes=LIMIT_BYTES).merged_over_defaults(),
    )


async def measure_connector(source: BenchSource) -> int:
    """The connector alone: its batches are counted and dropped."""
    columns = tuple(source.columns)
    scope = RequestScope(options=JobOptions(), requested={"src": {TABLE: columns}})
    registry = SourceRegistry(settings(), SessionLimits(), scope)
    factory = registry.connector(source.connection.type)
    assert factory is not None
    connector = factory.build(descriptor_of(source.connection))
    rows = 0
    try:
        await connector.test_connection()
        request = StreamRequest(config_name="src", tables={TABLE: columns})
        stream = await connector.open_stream(request)
        while (batch := await stream.next_batch()) is not None:
            rows += batch.row_count if isinstance(batch, EncodedBatch) else len(batch.rows)
    finally:
        await connector.close()
    return rows


async def to_store(
    engines: RequestEngines, store: ObjectStore, source: BenchSource, table: str
) -> int:
    """A job's whole way: connector, Engine, seal, store; as a worker goes it."""
    wanted = {"src": {table: tuple(source.tables[table])}}
    engine = engines.engine_for([source.connection], JobOptions(), wanted)
    plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=wanted))
    sealer = ResultSealer(storage_key=KEY, hmac_key=KEY)
    async with store.upload("external-data/bench.json") as upload:

        async def write(chunk: bytes | memoryview) -> None:
            await upload.write(sealer.feed(chunk))

        summary = await engine.stream_extraction(plan, write)
        await upload.write(sealer.finish())
        await upload.complete()
    await store.delete("external-data/bench.json")
    return summary.row_count


async def measure_folder(source: BenchSource, table: str = TABLE) -> int:
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        async with (
            open_source_engines(settings()) as engines,
            open_object_folder(Path(folder) / "objects") as store,
        ):
            return await to_store(engines, store, source, table)


def bench_bucket() -> S3Location:
    """From ``FETCHER_BENCH_S3_ENDPOINT`` and its companions."""
    return S3Location(
        endpoint=os.environ["FETCHER_BENCH_S3_ENDPOINT"],
        bucket=os.environ.get("FETCHER_BENCH_S3_BUCKET", "fetcher-bench"),
        access_key_id=os.environ.get("FETCHER_BENCH_S3_ACCESS_KEY", "fetcher-bench"),
        secret_key=os.environ.get("FETCHER_BENCH_S3_SECRET_KEY", "fetcher-bench"),
        path_style=True,
    )


@asynccontextmanager
async def open_for_s3(source: BenchSource) -> AsyncGenerator[Measure]:
    async with (
        open_asyncio(lambda _: None),
        open_source_engines(settings()) as engines,
        open_s3(bench_bucket()) as store,
    ):
        # a worker's self-probe, which also prepares TLS
        await store.probe().check()
        yield lambda: to_store(engines, store, source, TABLE)


async def measure_schema(source: BenchSource) -> int:
    """A schema of 5 000 tables discovered through the Engine; rows are tables here."""
    assert source.wide is not None
    async with open_source_engines(settings()) as engines:
        engine = engines.engine_for([source.wide], JobOptions())
        return len((await engine.discover_schema(TENANT, "src")).tables)


async def measure_idle(_: BenchSource) -> int:
    """How late the loop of a process is that only waits, beside the other work of the machine."""
    await trio.sleep(IDLE_SECONDS)
    return 0


MEASURES: Final[Mapping[str, Callable[[BenchSource], Awaitable[int]]]] = {
    "connector": measure_connector,
    "sealed_to_folder": measure_folder,
    "large_rows": partial(measure_folder, table=LARGE_TABLE),
    "schema": measure_schema,
    "idle": measure_idle,
}


def opening(name: str, source: BenchSource) -> Callable[[], AbstractAsyncContextManager[Measure]]:
    """What a worker opens when it starts, and then the measurement."""
    if name == "sealed_to_s3":
        return lambda: open_for_s3(source)
    measure = MEASURES[name]

    @asynccontextmanager
    async def as_it_is() -> AsyncGenerator[Measure]:
        yield lambda: measure(source)

    return as_it_is


if __name__ == "__main__":
    report_opened(opening(sys.argv[2], bench_source(sys.argv[1])))
