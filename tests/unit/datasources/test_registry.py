"""How connectors are chosen and built: nothing is opened, nothing secret gets out.

Also the rows of spec engine 21.14 on stores and connectors, as far as this host has them. Its
connection records are read by typed ids and queries through :mod:`fetcher.ports`, without the
Engine (design section 3). That voids two rows: a record that vanishes under ``update_by_id`` and a
page's filter of the wrong kind are held by the Engine's and the API's tests (``spec_rows.toml``).
"""

import builtins
import os
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fetcher import datasources
from fetcher.api.path_ids import connection_id
from fetcher.datasources.records import ResolvedConnectionStore, descriptor_of, record_of
from fetcher.datasources.registry import load_connectors
from fetcher.datasources.source_settings import RequestScope
from fetcher.datasources.sqlite.session import Session
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import DEFAULT_TENANT
from fetcher.domain.jobs import JobOptions
from fetcher.domain.tenants import NO_TENANT
from fetcher_engine import (
    ConnectionDescriptor,
    Connector,
    EncodedBatch,
    Engine,
    EngineError,
    ErrorCategory,
    SourceFailure,
    Stage,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import MemoryConnectorFactory, MemoryRegistry, MemorySource
from tests.unit.datasources.requested import (
    TENANT,
    a_connection,
    a_registry,
    a_store,
)


def test_building_opens_nothing_and_reveals_nothing() -> None:
    registry = a_registry()
    factory = registry.connector("POSTGRESQL")
    assert factory is not None
    assert factory.requires_fields
    factory.build(descriptor_of(a_connection()))


@pytest.mark.parametrize("name", [*SourceType, "PLUGIN_CRM"])
def test_no_factory_does_any_io(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_connectors()
    factory = a_registry(tmp_path).connector(name)
    assert factory is not None
    is_crm = name == "PLUGIN_CRM"
    record = a_connection(SourceType.MONGODB if is_crm else SourceType(name))
    descriptor = descriptor_of(replace(record, config_name="plugin_crm" if is_crm else "src"))

    def refuse(*_: object, **__: object) -> None:
        message = "building must do no I/O"
        raise AssertionError(message)

    with monkeypatch.context() as watched:
        for owner, function in (
            (socket, "socket"),
            (socket, "getaddrinfo"),
            (sqlite3, "connect"),
            (builtins, "open"),
            (os, "open"),
            (threading.Thread, "start"),
        ):
            watched.setattr(owner, function, refuse)
        factory.build(descriptor)


@pytest.mark.parametrize("name", ["DB2", "postgresql", "", "x"])
def test_types_without_a_connector_have_no_factory(name: str) -> None:
    assert a_registry().connector(name) is None


def test_sqlite_needs_a_folder(tmp_path: Path) -> None:
    registry = a_registry(tmp_path)
    assert registry.connector("SQLITE") is registry.connector("SQLITE") is not None


def test_a_descriptor_without_its_record_is_refused() -> None:
    with pytest.raises(EngineError) as caught:
        record_of(ConnectionDescriptor(config_name="src", type="POSTGRESQL"))
    assert caught.value.category is ErrorCategory.VALIDATION


# --- connectors ------------------------------------------------------------------------------


class HostRefused(Exception):
    """What a host guard would raise."""


async def test_a_refused_host_stays_recognisable_behind_a_safe_text() -> None:
    refused = HostRefused("10.0.0.1 is private")
    source = MemorySource(
        discovery_error=EngineError(
            ErrorCategory.CONNECT, "failed to connect to datasource", refused
        )
    )
    registry = MemoryRegistry({"POSTGRESQL": MemoryConnectorFactory(source)})
    engine = Engine(registry, connection_store=a_store(a_connection()))
    with pytest.raises(EngineError) as caught:
        await engine.discover_schema(TENANT, "src")
    error = caught.value
    assert error.category is ErrorCategory.CONNECT
    assert error.unwrap() is refused
    assert error.__cause__ is None
    assert "10.0.0.1" not in f"{error} {error!r} {error.to_public_dict()}"


async def test_a_factory_that_fails_is_told_in_fixed_words() -> None:
    factory = MemoryConnectorFactory(MemorySource())
    factory.build_error = RuntimeError("canary")
    engine = Engine(
        MemoryRegistry({"POSTGRESQL": factory}), connection_store=a_store(a_connection())
    )
    with pytest.raises(EngineError) as caught:
        await engine.test_connection(TENANT, "src")
    error = caught.value
    assert error.category is ErrorCategory.UNAVAILABLE
    assert error.message == "failed to build connector for connection"
    assert "canary" not in repr((error, vars(error), error.__cause__, error.__context__))


def a_sqlite_connector(folder: Path) -> Connector:
    with closing(sqlite3.connect(folder / "d.db")) as database:
        database.executescript("CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
    factory = a_registry(folder).connector("SQLITE")
    assert factory is not None
    connection = replace(a_connection(SourceType.SQLITE), database_name="d.db")
    return factory.build(descriptor_of(connection))


async def test_a_query_needs_no_connect_before_it(tmp_path: Path) -> None:
    """Voided row 'query before connect': a connector opens its session when it is first needed."""
    connector = a_sqlite_connector(tmp_path)
    stream = await connector.open_stream(StreamRequest(config_name="src", tables={"t": ("a",)}))
    assert await stream.next_batch() == EncodedBatch("t", b'{"a":7}', 1)
    assert await stream.next_batch() is None
    await stream.aclose()
    await connector.close()


async def test_a_connector_that_was_never_used_closes_without_an_error(tmp_path: Path) -> None:
    factory = a_registry().connector("POSTGRESQL")
    assert factory is not None
    for connector in (factory.build(descriptor_of(a_connection())), a_sqlite_connector(tmp_path)):
        await connector.close()
        await connector.close()


async def test_a_session_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    close = Session.close

    async def counted(session: Session) -> None:
        closed.append(session)
        await close(session)

    monkeypatch.setattr(Session, "close", counted)
    connector = a_sqlite_connector(tmp_path)
    await connector.test_connection()
    await connector.close()
    await connector.close()
    assert len(closed) == 1


async def test_a_condition_that_is_none_fails_and_is_not_skipped(tmp_path: Path) -> None:
    """Improved row: 'a leaf of another type is skipped silently' (spec 17.7)."""
    connector = a_sqlite_connector(tmp_path)
    with pytest.raises(SourceFailure) as caught:
        await connector.open_stream(
            StreamRequest(config_name="src", tables={"t": ("a",)}, filters={"t": {"a": "x = 1"}})
        )
    await connector.close()
    failure = caught.value
    assert (failure.stage, failure.reason) == (Stage.QUERY, "invalid_filter")
    assert (failure.table, failure.column) == ("t", "a")


# --- ids and tenants -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["not-a-uuid", "", "12345"])
def test_a_malformed_id_never_reaches_a_store(text: str) -> None:
    """Amended row 'persistent store: bad UUID': records are asked for by typed ids alone, and a
    path that holds none is ``FET-0404`` (spec rest-api 5.2)."""
    with pytest.raises(FetcherError) as caught:
        connection_id(text)
    assert caught.value.code == "FET-0404"


def test_without_tenants_every_operation_is_the_default_ones() -> None:
    assert NO_TENANT.engine_id == DEFAULT_TENANT == "default"


async def test_the_tenant_is_that_of_each_call() -> None:
    """The bridge carries no tenant of its own: the argument is passed on."""
    asked = []

    class Noting(ResolvedConnectionStore):
        async def find_connection(
            self, tenant: TenantContext, config_name: str
        ) -> ConnectionDescriptor | None:
            asked.append(tenant)
            return await super().find_connection(tenant, config_name)

    scope = RequestScope(options=JobOptions(), requested=None)
    registry = MemoryRegistry({"POSTGRESQL": MemoryConnectorFactory(MemorySource())})
    engine = Engine(registry, connection_store=Noting([a_connection()], scope))
    for name in ("default", "t9", "default"):
        await engine.test_connection(TenantContext.new(name).with_request_id(f"r-{name}"), "src")
    assert [(t.tenant_id, t.request_id) for t in asked] == [
        ("default", "r-default"),
        ("t9", "r-t9"),
        ("default", "r-default"),
    ]


@pytest.mark.parametrize(
    ("connection", "packages", "driver"),
    [
        (a_connection(), ("postgresql",), "psycopg"),
        (a_connection(SourceType.MONGODB), ("mongodb",), "pymongo"),
        # row of datasources 19.11: an adapter that cannot query collections (FET-0055)
        (
            replace(a_connection(SourceType.MONGODB), config_name="plugin_crm"),
            ("mongodb", "plugin_crm"),
            "pymongo",
        ),
    ],
)
async def test_type_whose_driver_is_not_installed_says_so(
    monkeypatch: pytest.MonkeyPatch,
    connection: Connection,
    packages: tuple[str, ...],
    driver: str,
) -> None:
    mine = tuple(f"fetcher.datasources.{package}" for package in packages)
    for package in packages:
        # what is imported anew below takes its place in the package above, too
        monkeypatch.setattr(datasources, package, getattr(datasources, package))
    for module in [name for name in sys.modules if name.startswith((*mine, f"{driver}."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, driver, None)
    load_connectors()
    descriptor = descriptor_of(connection)
    factory = a_registry().connector(descriptor.type)
    assert factory is not None
    connector = factory.build(descriptor)
    request = StreamRequest(config_name="src", tables={})
    for ask in (
        connector.test_connection,
        connector.discover_schema,
        lambda: connector.open_stream(request),
    ):
        with pytest.raises(SourceFailure) as caught:
            await ask()
        assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "driver_missing")
    await connector.close()


async def test_sqlite_without_its_folder_says_that_it_is_off() -> None:
    factory = a_registry().connector(SourceType.SQLITE)
    assert factory is not None
    with pytest.raises(SourceFailure) as caught:
        await factory.build(descriptor_of(a_connection(SourceType.SQLITE))).test_connection()
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "type_off")


@pytest.mark.parametrize(
    ("config_name", "source_type", "expected"),
    [
        ("plugin_crm", SourceType.MONGODB, "PLUGIN_CRM"),
        ("plugin_crm", SourceType.POSTGRESQL, "POSTGRESQL"),
        ("Plugin_CRM", SourceType.MONGODB, "MONGODB"),
        ("my_plugin_crm", SourceType.MONGODB, "MONGODB"),
    ],
)
def test_plugin_crm_is_known_by_name_and_type(
    config_name: str, source_type: SourceType, expected: str
) -> None:
    connection = replace(a_connection(source_type), config_name=config_name)
    assert descriptor_of(connection).type == expected
    assert a_registry().connector(expected) is not None


def test_same_type_has_the_same_factory() -> None:
    registry = a_registry()
    first = registry.connector(SourceType.POSTGRESQL)
    assert first is registry.connector(SourceType.POSTGRESQL)
    assert registry.connector("DB2") is None
