"""A connection whose server nobody proves is told of once, by whoever uses it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from fetcher.datasources import told_once
from fetcher.datasources.engines import RequestEngines, SourceSettings
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions

NOW = datetime(2031, 1, 1, tzinfo=UTC)
CANARY = "canary-2f6b"


def a_connection(mode: str, source_type: SourceType = SourceType.POSTGRESQL) -> Connection:
    return Connection(
        id=new_connection_id(),
        config_name="shop",
        type=source_type,
        host=CANARY,
        port=1,
        database_name=CANARY,
        username=CANARY,
        password_encrypted=CANARY,
        encryption_key_version="1",
        created_at=NOW,
        updated_at=NOW,
        tls=TlsSettings(mode=mode, cert=CANARY, key=CANARY),
    )


def some_engines(**settings: bool) -> RequestEngines:
    decrypt = lambda stored, _: stored  # noqa: E731
    return RequestEngines(SourceSettings(decrypt=decrypt, **settings))  # type: ignore[arg-type]


def test_it_is_warned_once_until_the_connection_changes() -> None:
    engines, connection = some_engines(), a_connection("require")
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            engines.engine_for([connection], JobOptions())
        assert logged == [
            {
                "event": "source_tls_is_weak",
                "log_level": "warning",
                "connection_id": str(connection.id),
                "config_name": "shop",
                "type": "POSTGRESQL",
                "mode": "require",
                "weakness": "the server's certificate is not verified",
            }
        ]
        changed = replace(connection, updated_at=NOW + timedelta(seconds=1))
        engines.engine_for([changed, a_connection("verify-full")], JobOptions())
    assert len(logged) == 2
    assert CANARY not in repr(logged)


def test_the_operators_own_trust_in_every_sql_server_is_warned_of() -> None:
    with structlog.testing.capture_logs() as logged:
        connection = a_connection("true", SourceType.SQL_SERVER)
        some_engines().engine_for([connection], JobOptions())
        assert logged == []
        some_engines(sqlserver_trusts_all=True).engine_for([connection], JobOptions())
    assert [each["type"] for each in logged] == ["SQL_SERVER"]


def test_only_so_many_connections_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_once, "REMEMBERED", 2)
    engines, first = some_engines(), a_connection("allow")
    with structlog.testing.capture_logs() as logged:
        for connection in (first, a_connection("allow"), a_connection("allow"), first):
            engines.engine_for([connection], JobOptions())
    assert len(logged) == 4
