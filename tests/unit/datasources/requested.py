"""Connections as a request has them, and what the registry is made of, for tests."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from fetcher.datasources.engines import RequestEngines, SourceSettings
from fetcher.datasources.records import ResolvedConnectionStore
from fetcher.datasources.registry import SourceRegistry
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions, MappedFields
from fetcher_engine import (
    TenantContext,
)

TENANT = TenantContext.new("default")
NOW = datetime(2031, 1, 1, tzinfo=UTC)


def a_connection(source_type: SourceType = SourceType.POSTGRESQL) -> Connection:
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=source_type,
        host="127.0.0.1",
        port=1,
        database_name="d",
        username="u",
        password_encrypted="sealed",
        encryption_key_version="1",
        created_at=NOW,
        updated_at=NOW,
    )


def engines(decrypt: Callable[[str, str], str]) -> RequestEngines:
    return RequestEngines(SourceSettings(decrypt=decrypt))


def a_registry(folder: Path | None = None) -> SourceRegistry:
    settings = SourceSettings(decrypt=never, sqlite_folder=folder)
    return SourceRegistry(
        settings, SessionLimits(), RequestScope(options=JobOptions(), requested=None)
    )


def a_store(*connections: Connection, asked: MappedFields | None = None) -> ResolvedConnectionStore:
    return ResolvedConnectionStore(connections, RequestScope(options=JobOptions(), requested=asked))


def never(stored: str, key_version: str) -> str:
    message = "building must not reveal a password"
    raise AssertionError(message)
