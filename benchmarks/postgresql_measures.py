"""One measurement in a process of its own: ``python -m benchmarks.postgresql_measures NAME``.

Prints one JSON object: rows, seconds, CPU seconds of this process, peak memory what it was
before the work began, and how late its loop was at worst.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import trio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from psycopg.rows import dict_row

from benchmarks.heartbeat import Measure, report, report_opened
from benchmarks.postgresql_table import COLUMNS, TABLE, conninfo, server
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
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher.ports import ObjectStore
from fetcher_engine import EncodedBatch, ExtractionRequest, Limits, StreamRequest, TenantContext

TENANT: Final = TenantContext.new("default")
KEY: Final = bytes(range(32))
LIMIT_BYTES: Final = 2 * 1024**3


def connection(schema: str | None = None) -> Connection:
    address = server()
    now = datetime.now(UTC)
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=SourceType.POSTGRESQL,
        host=address["host"],
        port=int(address["port"]),
        database_name="fetcher_src_bench",
        username=address["user"],
        password_encrypted=address.get("password", ""),
        encryption_key_version="1",
        created_at=now,
        updated_at=now,
        schema=schema,
    )


def settings() -> SourceSettings:
    return SourceSettings(
        decrypt=lambda stored, _: stored,
        limits=Limits(max_result_bytes=LIMIT_BYTES).merged_over_defaults(),
    )


async def measure_connector() -> int:
    """The connector alone: its batches are counted and dropped."""
    record = connection()
    scope = RequestScope(options=JobOptions(), requested={"src": {TABLE: COLUMNS}})
    factory = SourceRegistry(settings(), SessionLimits(), scope).connector(record.type)
    assert factory is not None
    connector = factory.build(descriptor_of(record))
    rows = 0
    try:
        await connector.test_connection()
        request = StreamRequest(config_name="src", tables={TABLE: COLUMNS})
        stream = await connector.open_stream(request)
        while (batch := await stream.next_batch()) is not None:
            rows += batch.row_count if isinstance(batch, EncodedBatch) else len(batch.rows)
    finally:
        await connector.close()
    return rows


async def to_store(engines: RequestEngines, store: ObjectStore) -> int:
    """A job's whole way: connector, Engine, seal, store; as a worker goes it."""
    engine = engines.engine_for([connection()], JobOptions(), {"src": {TABLE: COLUMNS}})
    request = ExtractionRequest(mapped_fields={"src": {TABLE: COLUMNS}})
    plan = await engine.plan_extraction(TENANT, request)
    sealer = ResultSealer(storage_key=KEY, hmac_key=KEY)
    async with store.upload("external-data/bench.json") as upload:

        async def write(chunk: bytes | memoryview) -> None:
            await upload.write(sealer.feed(chunk))

        summary = await engine.stream_extraction(plan, write)
        await upload.write(sealer.finish())
        await upload.complete()
    await store.delete("external-data/bench.json")
    return summary.row_count


async def measure_folder() -> int:
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        async with (
            open_source_engines(settings()) as engines,
            open_object_folder(Path(folder) / "objects") as store,
        ):
            return await to_store(engines, store)


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
async def open_for_s3() -> AsyncGenerator[Measure]:
    async with (
        open_asyncio(lambda _: None),
        open_source_engines(settings()) as engines,
        open_s3(bench_bucket()) as store,
    ):
        # a worker's self-probe, which also prepares TLS
        await store.probe().check()
        yield lambda: to_store(engines, store)


async def measure_schema() -> int:
    """A schema of 5 000 tables discovered through the Engine; rows are tables here."""
    async with open_source_engines(settings()) as engines:
        engine = engines.engine_for([connection("wide")], JobOptions())
        return len((await engine.discover_schema(TENANT, "src")).tables)


async def measure_usual() -> int:
    """How such a thing is usually written: rows as dictionaries, one text, one ciphertext."""
    return await trio.to_thread.run_sync(_usual)


def _usual() -> int:
    with psycopg.connect(conninfo(), row_factory=dict_row) as database:
        rows: list[dict[str, Any]] = database.execute(f"SELECT * FROM {TABLE}".encode()).fetchall()
    text = json.dumps({"src": {TABLE: rows}}, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()
    sealed = AESGCM(KEY).encrypt(os.urandom(12), text, None)
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        (Path(folder) / digest).write_bytes(sealed)
    return len(rows)


MEASURES: Final[dict[str, Measure]] = {
    "connector": measure_connector,
    "sealed_to_folder": measure_folder,
    "schema": measure_schema,
    "usual": measure_usual,
}


if __name__ == "__main__":
    if sys.argv[1] == "sealed_to_s3":
        report_opened(open_for_s3)
    else:
        report(MEASURES[sys.argv[1]])
