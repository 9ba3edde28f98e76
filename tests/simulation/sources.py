"""Four databases: one that answers at once, two that take their time, one that breaks.

Each may refuse our password for a while.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

import trio

from fetcher.concurrency import TrioConcurrency
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import Filters, JobOptions, MappedFields
from fetcher_engine import ConnectionDescriptor, Engine, SourceFailure, Stage, TenantContext
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
LOGIN_SECONDS: Final = 0.05
PROBE_SECONDS: Final = 2.0
PASSED_BY_SECONDS: Final = 10.0
"""Who asked the breaker right before it opened has opened its session by then."""
DOCUMENT: Final = (
    b'{"%s":{"orders":['
    + b",".join(b'{"id":%d,"note":"gr\xc3\xb6\xc3\x9fe %d"}' % (n, n) for n in range(6))
    + b"]}}"
)


@dataclass
class Outages:
    """Which databases refuse us, and what was done to them meanwhile."""

    violations: list[str] = field(default_factory=list)
    ever: set[str] = field(default_factory=set)
    probes: int = 0
    is_exact: bool = True
    """Clock and processes run evenly and breakers answer: what only saves work holds strictly."""
    _until: dict[str, tuple[float, datetime]] = field(default_factory=dict)
    _left_alone_since: dict[str, float] = field(default_factory=dict)
    _probed: list[str] = field(default_factory=list)

    def begin(self, connection: Connection, seconds: float) -> None:
        """Refused is this form of the connection: a changed password is taken."""
        self.ever.add(connection.config_name)
        until = trio.current_time() + seconds
        self._until[connection.config_name] = until, connection.updated_at

    def end(self) -> None:
        self._until.clear()

    def note_breaker(self, config_name: str, *, is_open: bool) -> None:
        if is_open:
            self._left_alone_since.setdefault(config_name, trio.current_time())
        else:
            self._left_alone_since.pop(config_name, None)

    async def read(self, connection: Connection) -> None:
        name = connection.config_name
        if self.is_exact and self._is_left_alone(name):
            self.violations.append(f"{name}: opened by a job while it was left alone")
        await trio.sleep(LOGIN_SECONDS)
        self._refuse(connection)

    async def test(self, connection: Connection) -> None:
        """Of a connection that is left alone: the probe."""
        name = connection.config_name
        with self._probing(name) if self._is_left_alone(name) else nullcontext():
            await trio.sleep(PROBE_SECONDS)
            self._refuse(connection)

    def _is_left_alone(self, name: str) -> bool:
        now = trio.current_time()
        return now - self._left_alone_since.get(name, now) > PASSED_BY_SECONDS

    @contextmanager
    def _probing(self, name: str) -> Iterator[None]:
        self.probes += 1
        if self.is_exact and name in self._probed:
            self.violations.append(f"{name}: probed by two at a time")
        self._probed.append(name)
        try:
            yield
        finally:
            self._probed.remove(name)

    def _refuse(self, connection: Connection) -> None:
        until, version = self._until.get(connection.config_name, (0.0, connection.updated_at))
        if trio.current_time() < until and connection.updated_at <= version:
            raise SourceFailure(Stage.AUTH, "auth")


class SimEngines:
    """SourceEngines over the Engine's memory harness."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages

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
        source.before_test = partial(self._outages.test, connection)
        source.before_discovery = source.before_query = partial(self._outages.read, connection)
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
