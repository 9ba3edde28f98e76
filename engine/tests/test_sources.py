"""Testing a connection, discovering its schema, and the cache (spec 21.5, 21.6)."""

from typing import Any

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    ConnectionPatch,
    EngineError,
    ErrorCategory,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import MemorySchemaCache, MemorySource

from .hosts import TENANT, Host
from .loops import every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop

OTHER = TenantContext.new("other")
ORDERS = SchemaSnapshot("discovered", (TableSnapshot("orders", ("id",)),))


def a_host(cache: MemorySchemaCache | None = None) -> Host:
    return Host({"pg": MemorySource(schema=ORDERS)}, cache=cache)


# --- test connection ---------------------------------------------------------------------------


def test_healthy_connection() -> None:
    host = Host({"pg": MemorySource()})
    result = run(host.engine.test_connection(TENANT, "pg"))
    assert result.to_public_dict() == {"success": True, "configName": "pg"}
    assert host.factories["pg"].last_built.calls == ["test_connection", "close"]


@pytest.mark.parametrize(
    ("tenant", "name"), [(TENANT, "nope"), (OTHER, "pg")], ids=["unknown", "another tenant's"]
)
def test_connection_that_the_tenant_does_not_have(tenant: TenantContext, name: str) -> None:
    host = a_host()
    with refuses(ErrorCategory.NOT_FOUND, "connection not found"):
        run(host.engine.test_connection(tenant, name))
    assert host.factories["pg"].built == []


def test_type_without_a_factory_is_named_but_not_at_any_length() -> None:
    host = a_host()
    bad = "X\x1b[31m" + "y" * 100
    host.store.put(TENANT, ConnectionDescriptor(config_name="odd", type=bad))
    with refuses(ErrorCategory.NOT_FOUND) as caught:
        run(host.engine.test_connection(TENANT, "odd"))
    assert caught.value.message == ("no connector registered for datasource type X[31m" + "y" * 59)


def test_build_that_fails_or_builds_nothing_is_unavailable() -> None:
    host = a_host()
    host.factories["pg"].builds_nothing = True
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run(host.engine.test_connection(TENANT, "pg"))
    host.factories["pg"].build_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run(host.engine.test_connection(TENANT, "pg"))
    assert host.close_counts() == []


@pytest.mark.parametrize("category", [ErrorCategory.VALIDATION, ErrorCategory.NOT_FOUND])
def test_validation_and_not_found_of_a_factory_pass(category: ErrorCategory) -> None:
    host = a_host()
    host.factories["pg"].build_error = EngineError(category, "connector option is invalid")
    with refuses(category, "connector option is invalid"):
        run(host.engine.test_connection(TENANT, "pg"))


def test_other_engine_error_of_a_factory_is_flattened() -> None:
    host = a_host()
    host.factories["pg"].build_error = EngineError(ErrorCategory.INTERNAL, "oops")
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run(host.engine.test_connection(TENANT, "pg"))


def test_failed_test_is_connect_redacted_and_closed_once() -> None:
    host = a_host()
    host.factories["pg"].source.test_error = leaky()
    with refuses(ErrorCategory.CONNECT, "failed to connect to datasource") as caught:
        run(host.engine.test_connection(TENANT, "pg"))
    assert caught.value.source == "pg"
    assert host.close_counts() == [1]


def test_failed_test_tells_the_connectors_safe_words() -> None:
    host = a_host()
    host.factories["pg"].source.test_error = SourceFailure(Stage.TLS, "certificate expired")
    with refuses(ErrorCategory.CONNECT) as caught:
        run(host.engine.test_connection(TENANT, "pg"))
    assert (caught.value.stage, caught.value.reason) == (Stage.TLS, "certificate expired")


def test_failed_close_does_not_spoil_a_success() -> None:
    host = a_host()
    host.factories["pg"].source.close_error = leaky()
    assert run(host.engine.test_connection(TENANT, "pg")).success


# --- discovery and cache -----------------------------------------------------------------------


def discover(host: Host, tenant: TenantContext = TENANT) -> SchemaSnapshot:
    return run(host.engine.discover_schema(tenant, "pg"))


def test_miss_discovers_caches_and_closes() -> None:
    cache = MemorySchemaCache()
    host = a_host(cache)
    snapshot = discover(host)
    assert (snapshot.config_name, snapshot.tables) == ("pg", ORDERS.tables)
    assert cache.stored(TENANT, "pg") == snapshot
    assert host.factories["pg"].last_built.calls == ["discover_schema", "close"]


def test_hit_builds_nothing() -> None:
    host = a_host(MemorySchemaCache())
    assert discover(host) == discover(host)
    assert len(host.factories["pg"].built) == 1


def test_without_a_cache_every_call_discovers() -> None:
    host = a_host()
    discover(host)
    discover(host)
    assert len(host.factories["pg"].built) == 2


def test_fresh_discovery_neither_reads_nor_writes_the_cache() -> None:
    cache = MemorySchemaCache()
    host = a_host(cache)
    old = discover(host)
    host.factories["pg"].source.schema = SchemaSnapshot("x")
    fresh = run(host.engine.discover_schema_fresh(TENANT, "pg"))
    assert fresh == SchemaSnapshot("pg")
    assert cache.stored(TENANT, "pg") == old


def test_cache_that_fails_is_a_cache_that_misses() -> None:
    cache = MemorySchemaCache()
    cache.get_error = cache.put_error = leaky()
    assert discover(a_host(cache)).tables == ORDERS.tables


def test_tenants_do_not_share_a_cached_schema() -> None:
    host = a_host(MemorySchemaCache())
    host.add("pg", OTHER)
    discover(host)
    discover(host, OTHER)
    assert len(host.factories["pg"].built) == 2


@pytest.mark.parametrize(
    "changes",
    [{"host": "h2"}, {"database_name": "d"}, {"username": "u"}, {"revision": "schemas=a,b"}],
)
def test_changed_connection_or_scope_finds_no_stale_schema(changes: dict[str, Any]) -> None:
    host = a_host(MemorySchemaCache())
    discover(host)
    host.store.put(TENANT, ConnectionDescriptor(config_name="pg", type="PG", **changes))
    discover(host)
    assert len(host.factories["pg"].built) == 2


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_after_a_write_the_schema_is_read_anew(operation: str) -> None:
    host = a_host(MemorySchemaCache())
    discover(host)
    if operation == "delete":
        run(host.engine.connections.delete(TENANT, "pg"))
        host.add("pg")
    else:
        run(host.engine.connections.update(TENANT, "pg", ConnectionPatch()))
    discover(host)
    assert len(host.factories["pg"].built) == 2


def test_failed_discovery_is_unavailable_redacted_and_closed() -> None:
    cache = MemorySchemaCache()
    host = a_host(cache)
    host.factories["pg"].source.discovery_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to discover datasource schema"):
        discover(host)
    assert host.close_counts() == [1]
    assert cache.stored(TENANT, "pg") is None


def test_failed_connect_in_discovery_is_connect() -> None:
    host = a_host()
    host.factories["pg"].source.discovery_error = SourceFailure(Stage.TCP, "refused")
    with refuses(ErrorCategory.CONNECT, "failed to connect to datasource") as caught:
        discover(host)
    assert (caught.value.stage, caught.value.reason) == (Stage.TCP, "refused")


def test_connect_error_of_the_host_passes_with_its_own_cause() -> None:
    unsafe = ValueError("host is private")
    host = a_host()
    error = EngineError(ErrorCategory.CONNECT, "failed to connect to datasource", unsafe)
    host.factories["pg"].source.discovery_error = error
    with refuses(ErrorCategory.CONNECT) as caught:
        discover(host)
    assert caught.value.unwrap() is unsafe


def test_discovery_with_nothing_built_closes_nothing() -> None:
    host = a_host()
    host.factories["pg"].builds_nothing = True
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        discover(host)
    assert host.close_counts() == []
