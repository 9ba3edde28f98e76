"""Four databases: one that answers at once, two that take their time, one that breaks."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import trio

from fetcher.concurrency import TrioConcurrency
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import Filters, JobOptions, MappedFields
from fetcher_engine import ConnectionDescriptor, Engine, TenantContext
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

ROWS: Final[Mapping[str, Sequence[Mapping[str, object]]]] = {
    "orders": [{"id": number, "note": f"größe {number}"} for number in range(6)]
}
BATCHES: Final = 4
SECONDS: Final = {"fast_db": 0.01, "slow_db": 4.0, "long_db": 30.0, "broken_db": 1.0}
"""How long each batch takes: the long one outlives its first lease."""
SOURCES: Final = tuple(SECONDS)
DOCUMENT: Final = (
    b'{"%s":{"orders":['
    + b",".join(b'{"id":%d,"note":"gr\xc3\xb6\xc3\x9fe %d"}' % (n, n) for n in range(6))
    + b"]}}"
)


class SimEngines:
    """SourceEngines over the Engine's memory harness."""

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: MappedFields | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        store = MemoryConnectionStore()
        [connection] = connections
        store.put(
            TenantContext.new("default"),
            ConnectionDescriptor(
                config_name=connection.config_name,
                type="POSTGRESQL",
                host=connection.host,
                port=connection.port,
                database_name=connection.database_name,
                username=connection.username,
            ),
        )
        source = MemorySource.of_rows(ROWS, rows_per_batch=2)
        seconds = SECONDS[connection.config_name]

        async def take_time() -> None:
            await trio.sleep(seconds)

        source.before_batch = take_time
        if connection.config_name == "broken_db":
            source.stream_error = ConnectionError("the database went away")
            source.stream_fail_after = 1
        registry = MemoryRegistry({"POSTGRESQL": MemoryConnectorFactory(source)})
        return Engine(registry, connection_store=store, concurrency=TrioConcurrency())


def a_connection(config_name: str) -> Connection:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Connection(
        id=new_connection_id(),
        config_name=config_name,
        type=SourceType.POSTGRESQL,
        host="db.test",
        port=5432,
        database_name="sales",
        username="reader",
        password_encrypted="sealed",
        encryption_key_version="1",
        created_at=at,
        updated_at=at,
        product_name="acme",
    )
