"""One measurement in a process of its own: ``python -m benchmarks.mysql_measures NAME``.

Prints one JSON object: rows, seconds, CPU seconds of this process, how late its loop was at worst,
peak memory and what it was before the work began.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pymysql  # type: ignore[import-untyped] # its stubs are no dependency
import trio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benchmarks.heartbeat import report
from benchmarks.mysql_table import COLUMNS, DATABASE, TABLE, WIDE_DATABASE, server
from fetcher.adapters.local.object_folder import open_object_folder
from fetcher.crypto.sealer import ResultSealer
from fetcher.datasources.engines import SourceSettings, open_source_engines
from fetcher.datasources.records import descriptor_of
from fetcher.datasources.registry import SourceRegistry
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EncodedBatch, ExtractionRequest, Limits, StreamRequest, TenantContext

TENANT: Final = TenantContext.new("default")
KEY: Final = bytes(range(32))
IDLE_SECONDS: Final = 3.0
LIMIT_BYTES: Final = 2 * 1024**3


def connection(database: str = DATABASE) -> Connection:
    address = server()
    now = datetime.now(UTC)
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=SourceType.MYSQL,
        host=address["host"],
        port=address["port"],
        database_name=database,
        username=address["user"],
        password_encrypted=address["password"],
        encryption_key_version="1",
        created_at=now,
        updated_at=now,
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


async def measure_folder() -> int:
    """A job's whole way: connector, Engine, seal, store; as a worker goes it."""
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        async with (
            open_source_engines(settings()) as engines,
            open_object_folder(Path(folder) / "objects") as store,
        ):
            wanted = {"src": {TABLE: COLUMNS}}
            engine = engines.engine_for([connection()], JobOptions(), wanted)
            plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=wanted))
            sealer = ResultSealer(storage_key=KEY, hmac_key=KEY)
            async with store.upload("external-data/bench.json") as upload:

                async def write(chunk: bytes | memoryview) -> None:
                    await upload.write(sealer.feed(chunk))

                summary = await engine.stream_extraction(plan, write)
                await upload.write(sealer.finish())
                await upload.complete()
            return summary.row_count


async def measure_schema() -> int:
    """A database of 5 000 tables discovered through the Engine; rows are tables here."""
    async with open_source_engines(settings()) as engines:
        engine = engines.engine_for([connection(WIDE_DATABASE)], JobOptions())
        return len((await engine.discover_schema(TENANT, "src")).tables)


async def measure_idle() -> int:
    """How late the loop of a process is that only waits, beside the other work of the machine."""
    await trio.sleep(IDLE_SECONDS)
    return 0


async def measure_usual() -> int:
    """How such a thing is usually written: rows as dictionaries, one text, one ciphertext."""
    return await trio.to_thread.run_sync(_usual)


def _usual() -> int:
    dictionaries = pymysql.cursors.DictCursor
    with pymysql.connect(**server(), database=DATABASE, cursorclass=dictionaries) as database:
        with database.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {TABLE}")
            rows = cursor.fetchall()
        text = json.dumps({"src": {TABLE: rows}}, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()
    sealed = AESGCM(KEY).encrypt(os.urandom(12), text, None)
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        (Path(folder) / digest).write_bytes(sealed)
    return len(rows)


MEASURES: Final[dict[str, Callable[[], Awaitable[int]]]] = {
    "connector": measure_connector,
    "sealed_to_folder": measure_folder,
    "schema": measure_schema,
    "idle": measure_idle,
    "usual": measure_usual,
}


if __name__ == "__main__":
    report(MEASURES[sys.argv[1]])
