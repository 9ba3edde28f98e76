"""How connectors are chosen and built: nothing is opened, nothing secret gets out."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fetcher.datasources.engines import RequestEngines, SourceSettings
from fetcher.datasources.registry import ResolvedConnectionStore, descriptor_of, record_of
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import ConnectionDescriptor, EngineError, ErrorCategory, TenantContext

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


def engines(reveal: Callable[[Connection], str], folder: Path | None = None) -> RequestEngines:
    return RequestEngines(SourceSettings(reveal=reveal, sqlite_folder=folder))


def never(connection: Connection) -> str:
    message = "building must not reveal a password"
    raise AssertionError(message)


def test_building_opens_nothing_and_reveals_nothing() -> None:
    registry = engines(never).registry_for(JobOptions())
    factory = registry.connector("POSTGRESQL")
    assert factory is not None
    assert factory.requires_fields
    factory.build(descriptor_of(a_connection()))


@pytest.mark.parametrize("name", ["MYSQL", "ORACLE", "SQL_SERVER", "MONGODB", "SQLITE", "", "x"])
def test_types_without_a_connector_have_no_factory(name: str) -> None:
    assert engines(never).registry_for(JobOptions()).connector(name) is None


def test_sqlite_needs_a_folder(tmp_path: Path) -> None:
    registry = engines(never, tmp_path).registry_for(JobOptions())
    assert registry.connector("SQLITE") is registry.connector("SQLITE") is not None


def test_a_descriptor_without_its_record_is_refused() -> None:
    with pytest.raises(EngineError) as caught:
        record_of(ConnectionDescriptor(config_name="src", type="POSTGRESQL"))
    assert caught.value.category is ErrorCategory.VALIDATION


async def test_the_first_record_of_a_name_counts() -> None:
    first, second = a_connection(), a_connection()
    store = ResolvedConnectionStore([first, second])
    found = await store.find_connection(TENANT, "src")
    assert found is not None
    assert record_of(found) is first
    assert await store.find_connection(TENANT, "other") is None


def test_a_descriptor_shows_no_secret() -> None:
    assert "sealed" not in repr(descriptor_of(a_connection()))


async def test_a_password_that_cannot_be_revealed_is_told_in_fixed_words() -> None:
    def fails(connection: Connection) -> str:
        message = f"canary {connection.password_encrypted}"
        raise ValueError(message)

    engine = engines(fails).engine_for([a_connection()], JobOptions())
    with pytest.raises(EngineError) as caught:
        await engine.test_connection(TENANT, "src")
    error = caught.value
    assert (error.category, error.stage, error.reason) == ("connect", "session", "credential")
    seen: BaseException | None = error
    while seen is not None:
        assert "canary" not in repr((seen, vars(seen)))
        seen = seen.__context__
