"""A host with every port there is, each method of which can be made to fail or to answer nonsense.

A point is a port's method, ``sink.open_result_stream``; ``World.point`` is the one that misbehaves.
"""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

from fetcher_engine import (
    ConnectionDescriptor,
    Engine,
    ExecutionState,
    ProtectedCredential,
    SchemaSnapshot,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionIdStore,
    MemoryConnector,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemoryResultSink,
    MemorySchemaCache,
    MemorySource,
    MemorySpool,
    RecordingExecutionStore,
)

from .leaks import ADDRESS
from .loops import concurrency_of_the_round
from .refusals import SENTINEL

P = TypeVar("P")

TENANT = TenantContext.new("acme").with_request_id("j1")
RECORD = ConnectionDescriptor(
    config_name="c", type="T", id="id-1", host=ADDRESS, host_attributes={"pem": SENTINEL}
)
SCHEMA = SchemaSnapshot("", (TableSnapshot("t", ("x", "y")), TableSnapshot("u", ("z",))))
ROWS: dict[str, list[dict[str, object]]] = {"t": [{"x": SENTINEL, "y": 1}], "u": [{"z": 2}]}


class World:
    """An Engine with all ports, what went into them and what came out."""

    def __init__(self, point: str = "", *, error: BaseException | None = None) -> None:
        self.point = point
        self.error = error
        self.answer: object = ...
        """Where it is set, the point answers it instead of raising."""
        self.reached: set[str] = set()
        self.endings: list[BaseException | None] = []
        self.states: list[ExecutionState] = []
        self.connectors: list[MemoryConnector] = []
        self.source = MemorySource(schema=SCHEMA, rows=ROWS)
        self.store = self._watch("store", MemoryConnectionIdStore())
        self.store.put(TENANT, RECORD)
        self.cache = self._watch("cache", MemorySchemaCache())
        self.sink = self._watch("sink", MemoryResultSink())
        self.spool = self._watch("spool", MemorySpool())
        self.registry = self._watch("registry", MemoryRegistry({"T": _Factory(self)}))
        self.engine = Engine(
            self.registry,
            connection_store=self.store,
            schema_cache=self.cache,
            execution_store=self._watch("executions", _States(self)),
            credential_protector=self._watch("protector", _Protector()),
            encrypted_persistence=True,
            active_execution_checker=self._watch("checker", _Checker()),
            result_sink=self.sink,
            spool=self.spool,
            row_encoding=self._watch("row_encoding", _Declining()),
            observability=self._watch("observability", _Tracing(self)),
            concurrency=concurrency_of_the_round(),
            now=self.watched("host.now", lambda: datetime(2030, 1, 2, tzinfo=UTC)),
        )
        self.cancel = self._watch("host", _Signal())
        self.progress = self.watched("host.progress", _told)
        self.write = self.watched("host.write", _taken)

    def misbehave(self, point: str) -> None:
        """What each point does first; raise where this is the one."""
        self.reached.add(point)
        if point == self.point and self.error is not None:
            raise self.error

    def _answers(self, point: str) -> bool:
        return point == self.point and self.answer is not ...

    def watched(self, point: str, real: Callable[..., Any]) -> Any:
        if inspect.iscoroutinefunction(real):

            @wraps(real)
            async def asynchronous(*args: object) -> object:
                self.misbehave(point)
                answer = await real(*args)
                return self.answer if self._answers(point) else self._watched_answer(point, answer)

            return asynchronous

        @wraps(real)
        def synchronous(*args: object) -> object:
            self.misbehave(point)
            answer = real(*args)
            return self.answer if self._answers(point) else self._watched_answer(point, answer)

        return synchronous

    def _watched_answer(self, point: str, answer: Any) -> Any:
        if point == "factory.build":
            self.connectors.append(answer)
        name = _MADE_BY.get(point)
        return answer if name is None else self._watch(name, answer)

    def _watch(self, name: str, port: P) -> P:
        for method in _METHODS[name].split():
            setattr(port, method, self.watched(f"{name}.{method}", getattr(port, method)))
        return port


_MADE_BY = {
    "registry.connector": "factory",
    "factory.build": "connector",
    "connector.open_stream": "stream",
    "sink.open_result_stream": "writer",
    "spool.open": "file",
}
_METHODS = {
    "registry": "connector",
    "factory": "build",
    "connector": "test_connection discover_schema open_stream close",
    "stream": "next_batch notes aclose",
    "store": (
        "find_connection create update delete list find_by_id update_by_id delete_by_id list_paged"
    ),
    "protector": "protect",
    "checker": "has_active_executions",
    "cache": "get_schema put_schema invalidate_schema",
    "executions": "save_execution",
    "sink": "open_result_stream",
    "writer": "write close abort",
    "spool": "open",
    "file": "append read aclose",
    "row_encoding": "encode",
    "observability": "start_span",
    "host": "is_cancelled",
}
PORT_METHODS = frozenset(f"{port}.{m}" for port, names in _METHODS.items() for m in names.split())


class _Factory(MemoryConnectorFactory):
    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__(world.source)

    @property
    def requires_fields(self) -> bool:
        self._world.misbehave("factory.requires_fields")
        return False

    @requires_fields.setter
    def requires_fields(self, value: bool) -> None: ...

    def build(self, descriptor: ConnectionDescriptor) -> MemoryConnector:
        return MemoryConnector(self.source, descriptor)


class _States(RecordingExecutionStore):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
        self._world.states.append(state)


class _Protector:
    async def protect(self, tenant: TenantContext, plaintext: bytes) -> ProtectedCredential:
        return ProtectedCredential(b"sealed " + plaintext, "7")


class _Checker:
    async def has_active_executions(self, tenant: TenantContext, config_name: str) -> bool:
        return False


class _Declining:
    def encode(self, rows: object) -> bytes | None:
        return None


class _Signal:
    def is_cancelled(self) -> bool:
        return False


def _told(*facts: object) -> None:
    """A progress that nobody looks at."""


async def _taken(piece: bytes | memoryview) -> None:
    """A write that takes whatever comes."""


class _Tracing:
    def __init__(self, world: World) -> None:
        self._world = world

    def start_span(self, operation: str) -> "_Span":
        return _Span(self._world)


class _Span:
    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> object:
        self._world.misbehave("span.enter")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._world.endings.append(error)
        self._world.misbehave("span.exit")
