"""What an Engine accepts as its ports (spec 6, 19.4, 21.2)."""

import functools
import weakref
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from fetcher_engine import (
    ConnectionDirectoryStore,
    ConnectionInput,
    ConnectionStore,
    ConnectorRegistry,
    Engine,
    ErrorCategory,
    Limits,
    TenantContext,
    check_port,
)
from fetcher_engine.memory import (
    MemoryConnectionIdStore,
    MemoryConnectionStore,
    MemoryExecutionStore,
    MemoryRegistry,
    MemoryResultSink,
    MemorySchemaCache,
    MemorySpool,
)

from .loops import concurrency_of_the_round, every_loop, run
from .refusals import leaky, refuses

VALIDATION = ErrorCategory.VALIDATION


class NoConnector:
    pass


class AsyncRegistry:
    async def connector(self, datasource_type: str) -> None: ...


class NarrowRegistry:
    def connector(self) -> None: ...


class HollowRegistry:
    connector = None


class SyncStore:
    def find_connection(self, tenant: object, config_name: str) -> None: ...


class AbsentStore:
    __engine_absent__ = True


class EmptyLookingStore(MemoryConnectionStore):
    def __len__(self) -> int:
        return 0


def test_registry_is_required() -> None:
    with refuses(VALIDATION, "connector registry is required"):
        Engine(None)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    "registry",
    [NoConnector(), MemoryRegistry, AsyncRegistry(), NarrowRegistry(), HollowRegistry(), "text"],
    ids=["no method", "class", "async method", "too few arguments", "None as method", "text"],
)
def test_registry_that_is_none_is_refused(registry: Any) -> None:
    with refuses(VALIDATION, "connector registry is invalid"):
        Engine(registry)


@pytest.mark.parametrize(
    ("option", "label"),
    [
        ("connection_store", "connection store"),
        ("schema_cache", "schema cache"),
        ("execution_store", "execution store"),
        ("credential_protector", "credential protector"),
        ("active_execution_checker", "active execution checker"),
        ("concurrency", "concurrency"),
        ("observability", "observability"),
        ("result_sink", "result sink"),
        ("spool", "spool"),
        ("row_encoding", "row encoding"),
    ],
)
def test_optional_port_that_is_broken_is_refused_and_none_is_absent(
    option: str, label: str
) -> None:
    absent: dict[str, Any] = {option: None}
    broken: dict[str, Any] = {option: NoConnector()}
    Engine(MemoryRegistry(), **absent)
    with refuses(VALIDATION, f"{label} is invalid"):
        Engine(MemoryRegistry(), **broken)


def test_encrypted_persistence_needs_a_protector() -> None:
    with refuses(
        VALIDATION, "credential protector is required when encrypted persistence is enabled"
    ):
        Engine(MemoryRegistry(), encrypted_persistence=True)


def test_plain_function_in_the_place_of_a_coroutine_is_refused() -> None:
    with refuses(VALIDATION, "store is invalid"):
        check_port(SyncStore(), ConnectionStore, "store")


def test_asynchronous_mocks_and_partials_count_as_coroutines() -> None:
    mock = Mock()
    mock.find_connection = AsyncMock(return_value=None)
    assert check_port(mock, ConnectionStore, "store") is mock
    real = MemoryConnectionStore()
    mock.find_connection = functools.partial(real.find_connection)
    assert check_port(mock, ConnectionStore, "store") is mock

    class AsyncCall:
        async def __call__(self, tenant: TenantContext, config_name: str) -> None: ...

    mock.find_connection = functools.partial(AsyncCall())
    assert check_port(mock, ConnectionStore, "store") is mock


def test_absent_is_none_a_dead_reference_or_a_marked_object_and_never_a_falsy_one() -> None:
    assert check_port(None, ConnectionStore, "store") is None
    dead = weakref.ref(NoConnector())
    assert check_port(dead, ConnectionStore, "store") is None
    assert check_port(AbsentStore(), ConnectionStore, "store") is None
    falsy = EmptyLookingStore()
    assert check_port(falsy, ConnectionStore, "store") is falsy


def test_marker_is_read_as_true_only() -> None:
    mock = Mock(spec=["connector"])
    mock.connector = lambda _: None
    assert check_port(mock, ConnectorRegistry, "registry") is mock


def test_memory_ports_are_ports() -> None:
    Engine(
        MemoryRegistry(),
        connection_store=MemoryConnectionStore(),
        schema_cache=MemorySchemaCache(),
        execution_store=MemoryExecutionStore(),
        result_sink=MemoryResultSink(),
        spool=MemorySpool(),
    )


@pytest.mark.parametrize("option", ["limits", "request_ceilings"])
def test_other_object_in_the_place_of_limits_is_refused(option: str) -> None:
    label = option.replace("_", " ")
    given: dict[str, Any] = {option: {"timeout": 5}}
    with refuses(VALIDATION, f"{label} is invalid"):
        Engine(MemoryRegistry(), **given)


def test_clock_that_cannot_be_called_is_refused() -> None:
    with refuses(VALIDATION, "clock is invalid"):
        Engine(MemoryRegistry(), now=0)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("broken", ["list", "delete_by_id"])
def test_store_that_keeps_connections_wrongly_is_refused_at_once(broken: str) -> None:
    store: Any = MemoryConnectionIdStore()
    setattr(store, broken, lambda *_: None)
    with refuses(VALIDATION, "connection store is invalid"):
        Engine(MemoryRegistry(), connection_store=store)


@every_loop
def test_store_that_offers_half_an_extension_is_refused_at_once() -> None:
    store: Any = MemoryConnectionIdStore()
    store.list_paged = None
    with refuses(VALIDATION, "connection store is invalid") as caught:
        Engine(MemoryRegistry(), connection_store=store)
    assert caught.value.__notes__ == ["see ConnectionIdStore.list_paged"]


def test_stub_that_is_inherited_from_the_protocol_is_no_method() -> None:
    class Half(ConnectionDirectoryStore):
        async def find_connection(self, tenant: TenantContext, config_name: str) -> None: ...

    with refuses(VALIDATION, "connection store is invalid"):
        Engine(MemoryRegistry(), connection_store=Half())  # type: ignore[abstract]


def test_port_that_cannot_be_asked_is_refused_and_raises_nothing_of_its_own() -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise leaky()

    store = MemoryConnectionStore()
    gone = weakref.proxy(store)
    del store
    for port in (Broken(), gone):
        with refuses(VALIDATION, "connection store is invalid"):
            check_port(port, ConnectionStore, "connection store")


@pytest.mark.parametrize("given", [None, Limits()])
def test_limits_default(given: Limits | None) -> None:
    assert Engine(MemoryRegistry(), limits=given).limits == Limits.defaults()


def test_one_limit_leaves_the_others_at_their_defaults() -> None:
    limits = Engine(MemoryRegistry(), limits=Limits(max_result_bytes=10)).limits
    assert limits == Limits.defaults().clamped_by(Limits(max_result_bytes=10))


def test_hard_limits_alone_are_kept_over_defaults() -> None:
    limits = Engine(MemoryRegistry(), limits=Limits(connector_hard_limits={"X": 5})).limits
    assert (limits.max_datasources, dict(limits.connector_hard_limits)) == (10, {"X": 5})


@every_loop
def test_store_is_missed_before_the_tenant_is_judged() -> None:
    engine = Engine(MemoryRegistry(), concurrency=concurrency_of_the_round())
    with refuses(VALIDATION, "connection store is not configured"):
        run(engine.test_connection(TenantContext(""), "c"))
    new = ConnectionInput(config_name="c", type="T")
    with refuses(VALIDATION, "connection store is not configured"):
        run(engine.connections.create(TenantContext("t1"), new))


@every_loop
def test_store_that_only_finds_serves_sources_but_keeps_no_connections() -> None:
    class Finder:
        async def find_connection(self, tenant: TenantContext, config_name: str) -> None: ...

    engine = Engine(
        MemoryRegistry(), connection_store=Finder(), concurrency=concurrency_of_the_round()
    )
    with refuses(ErrorCategory.NOT_FOUND, "connection not found"):
        run(engine.test_connection(TenantContext("t1"), "c"))
    with refuses(VALIDATION, "connection store is not configured"):
        run(engine.connections.list(TenantContext("t1")))
    with refuses(VALIDATION, "connection store is not configured"):
        run(engine.connections_by_id.get(TenantContext("t1"), "7"))
