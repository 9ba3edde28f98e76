"""What a tenant is told of the network, and what of internal sources."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fetcher.datasources.host_guard import HostGuard, HostRefused, Rule
from fetcher.datasources.records import descriptor_of, target_of
from fetcher.datasources.registry import SourceRegistry
from fetcher.datasources.reticence import ReticentFactory
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.domain.connections import Connection, Origin, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import (
    BatchStream,
    ConnectionDescriptor,
    Connector,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

NOW = datetime(2031, 1, 1, tzinfo=UTC)
RECORD = Connection(
    id=new_connection_id(),
    config_name="src",
    type=SourceType.POSTGRESQL,
    host="127.0.0.1",
    port=1,
    database_name="d",
    username="u",
    password_encrypted="sealed",
    encryption_key_version="1",
    created_at=NOW,
    updated_at=NOW,
)
INTERNAL = replace(RECORD, encryption_key_version="", origin=Origin.INTERNAL)


class Failing:
    """A connector whose every operation fails the same way."""

    def __init__(self, failure: SourceFailure) -> None:
        self.failure = failure
        self.closed = False

    async def test_connection(self) -> None:
        raise self.failure

    async def discover_schema(self) -> SchemaSnapshot:
        raise self.failure

    async def open_stream(self, request: StreamRequest) -> BatchStream:
        raise self.failure

    async def close(self) -> None:
        self.closed = True


class Factory:
    requires_fields = False

    def __init__(self, connector: Connector) -> None:
        self.connector = connector

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        return self.connector


async def told(failure: SourceFailure, record: Connection = RECORD) -> set[tuple[str, str]]:
    """Stage and reason of each operation."""
    connector = ReticentFactory(Factory(Failing(failure))).build(descriptor_of(record))
    request = StreamRequest(config_name="src", tables={"t": ("a",)})
    operations: tuple[Callable[[], Awaitable[object]], ...] = (
        connector.test_connection,
        connector.discover_schema,
        lambda: connector.open_stream(request),
    )
    found = set()
    for operation in operations:
        with pytest.raises(SourceFailure) as caught:
            await operation()
        assert caught.value.__context__ is None
        found.add((caught.value.stage.value, caught.value.reason))
    return found


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (Stage.DNS, "dns"),
        (Stage.TCP, "refused"),
        (Stage.TCP, "unreachable"),
        (Stage.TCP, "timeout"),
        (Stage.TCP, "reset"),
        (Stage.TLS, "tls"),
        (Stage.TLS, "timeout"),
        (Stage.TLS, "protocol"),
        (Stage.AUTH, "timeout"),
        (Stage.AUTH, "reset"),
        (Stage.AUTH, "protocol"),
    ],
)
async def test_how_far_a_dial_came_is_not_told(stage: Stage, reason: str) -> None:
    assert await told(SourceFailure(stage, reason)) == {("tcp", "network")}
    assert await told(SourceFailure(stage, reason), INTERNAL) == {(stage.value, reason)}


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (Stage.AUTH, "auth"),
        (Stage.AUTH, "database_missing"),
        (Stage.TLS, "tls_required"),
        (Stage.QUERY, "timeout"),
        (Stage.SESSION, "credential"),
    ],
)
async def test_what_a_database_says_itself_passes(stage: Stage, reason: str) -> None:
    assert await told(SourceFailure(stage, reason)) == {(stage.value, reason)}


async def test_refused_host_passes() -> None:
    assert await told(HostRefused(Rule.RANGE)) == {("dns", "host_refused")}


async def test_inner_connector_is_closed() -> None:
    inner = Failing(SourceFailure(Stage.DNS, "dns"))
    await ReticentFactory(Factory(inner)).build(descriptor_of(RECORD)).close()
    assert inner.closed


async def test_registry_with_a_judge_guards_stored_connections_and_no_internal_ones() -> None:
    settings = SourceSettings(decrypt=lambda *_: "", judge=HostGuard().judge)
    scope = RequestScope(options=JobOptions(), requested=None)
    factory = SourceRegistry(settings, SessionLimits(), scope).connector("POSTGRESQL")
    assert factory is not None
    assert factory.requires_fields
    outcomes = {}
    without_key_version = replace(RECORD, encryption_key_version="")
    for record in (RECORD, INTERNAL, without_key_version):
        connector = factory.build(descriptor_of(record))
        with pytest.raises(SourceFailure) as caught:
            await connector.test_connection()
        await connector.close()
        outcomes[record.origin, record.encryption_key_version] = caught.value.reason
    assert outcomes == {
        (Origin.STORED, "1"): "host_refused",
        (Origin.INTERNAL, ""): "refused",
        (Origin.STORED, ""): "host_refused",  # a record that lost it is nobody's internal source
    }
    assert target_of(INTERNAL, settings).judge is None
