"""The connections of one request: which are found, and as what."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fetcher.datasources.records import ResolvedConnectionStore, descriptor_of, record_of
from fetcher.datasources.source_settings import RequestScope
from fetcher.domain.connections import SourceType
from fetcher.domain.jobs import JobOptions, MappedFields
from fetcher_engine import (
    ConnectionInput,
    ConnectionListParams,
    ConnectionPatch,
    Engine,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
)
from fetcher_engine.memory import MemoryConnectorFactory, MemoryRegistry, MemorySource
from tests.unit.datasources.requested import (
    NOW,
    TENANT,
    a_connection,
    a_store,
    engines,
    never,
)


async def test_the_first_record_of_a_name_counts() -> None:
    first, second = a_connection(), a_connection()
    store = a_store(first, second)
    found = await store.find_connection(TENANT, "src")
    assert found is not None
    assert record_of(found) is first
    assert await store.find_connection(TENANT, "other") is None


@pytest.mark.parametrize(("resolved", "asked"), [(0, "src"), (1, "other"), (1, "SRC"), (1, "src ")])
async def test_a_name_that_was_not_resolved_is_not_found(resolved: int, asked: str) -> None:
    engine = engines(never).engine_for([a_connection()] * resolved, JobOptions())
    request = ExtractionRequest(mapped_fields={asked: {"t": ["a"]}})
    for call in (
        lambda: engine.test_connection(TENANT, asked),
        lambda: engine.discover_schema(TENANT, asked),
        lambda: engine.plan_extraction(TENANT, request),
    ):
        with pytest.raises(EngineError) as caught:
            await call()
        assert caught.value.category is ErrorCategory.NOT_FOUND


async def test_the_connections_of_a_request_can_be_found_and_nothing_else() -> None:
    """The store has no other method (spec 17.5): the Engine says so before it calls anything.

    The row's text, `schema connection store supports discovery only`, is that of a store that has
    methods to refuse by; ours is not one that keeps connections.
    """
    by_name = (engine := engines(never).engine_for([a_connection()], JobOptions())).connections
    by_id = engine.connections_by_id
    descriptor = descriptor_of(a_connection())
    for call in (
        lambda: by_name.create(TENANT, ConnectionInput(config_name="new", type="POSTGRESQL")),
        lambda: by_name.get(TENANT, "src"),
        lambda: by_name.list(TENANT),
        lambda: by_name.update(TENANT, "src", ConnectionPatch(port=1)),
        lambda: by_name.delete(TENANT, "src"),
        lambda: by_id.get(TENANT, descriptor.id),
        lambda: by_id.list_paged(TENANT, ConnectionListParams()),
        lambda: by_id.update(TENANT, descriptor.id, descriptor, ConnectionPatch(port=1)),
        lambda: by_id.delete(TENANT, descriptor.id),
    ):
        with pytest.raises(EngineError) as caught:
            await call()
        assert caught.value.category is ErrorCategory.VALIDATION
        assert caught.value.message == "connection store is not configured"


async def test_the_record_travels_to_its_connector_as_itself() -> None:
    connection = a_connection()
    factory = MemoryConnectorFactory(MemorySource())
    engine = Engine(MemoryRegistry({"POSTGRESQL": factory}), connection_store=a_store(connection))
    await engine.test_connection(TENANT, "src")
    assert factory.last_built is not None
    assert record_of(factory.last_built.descriptor) is connection


def test_a_descriptor_mirrors_its_record() -> None:
    connection = replace(a_connection(), schema="ops")
    found = descriptor_of(connection)
    assert (found.id, found.config_name, found.type) == (str(connection.id), "src", "POSTGRESQL")
    assert (found.host, found.port, found.database_name) == ("127.0.0.1", 1, "d")
    assert (found.username, found.schema, found.ssl_mode, found.key_version) == (
        "u",
        "ops",
        "",
        "1",
    )


async def test_a_schema_of_other_tables_or_of_an_older_record_is_another_one() -> None:
    """Spec engine 12: what was discovered for one scope is never served for another."""
    connection = a_connection()
    later = replace(connection, updated_at=NOW + timedelta(seconds=1))
    asked: list[MappedFields | None] = [
        None,
        {},
        {"src": {"a": ("*",)}},
        {"src": {"a": ("*",), "b": ("*",)}},
        {"src": {"a,b": ("*",)}},
    ]
    revisions = set()
    for record in (connection, later):
        for requested in asked:
            found = await a_store(record, asked=requested).find_connection(TENANT, "src")
            assert found is not None
            revisions.add(found.revision)
    assert len(revisions) == 2 * len(asked) - 2, "no tables named and none for this source: alike"
    turned = await a_store(connection, asked={"src": {"b": ("id",), "a": ("id",)}}).find_connection(
        TENANT, "src"
    )
    assert turned is not None
    assert turned.revision in revisions


async def test_fields_that_are_looked_for_by_name_make_another_schema() -> None:
    """A field that no sampled document of MongoDB's has is found for those who ask for it: whoever
    comes later with another one must not be told from that."""

    async def revision(type_: SourceType, fields: list[str], *filtered: str) -> str:
        scope = RequestScope(
            options=JobOptions(),
            requested={"src": {"a": tuple(fields)}},
            filters={"src": {"a": {name: {"eq": (1,)} for name in filtered}}} if filtered else {},
        )
        store = ResolvedConnectionStore([replace(a_connection(), type=type_)], scope)
        found = await store.find_connection(TENANT, "src")
        assert found is not None
        return found.revision

    mongo, postgresql = SourceType.MONGODB, SourceType.POSTGRESQL
    several = [
        await revision(mongo, ["*"]),
        await revision(mongo, ["x"]),
        await revision(mongo, ["x", "y"]),
        await revision(mongo, ["x"], "rare"),
    ]
    assert len(set(several)) == len(several)
    assert await revision(mongo, ["y", "x"]) == await revision(mongo, ["x", "y", "x"]) == several[2]
    assert await revision(mongo, ["x"], "y") == several[2]
    # a catalogue tells all columns, whoever asks
    assert await revision(postgresql, ["x"]) == await revision(postgresql, ["y"], "z")


def test_a_descriptor_shows_no_secret() -> None:
    assert "sealed" not in repr(descriptor_of(a_connection()))


async def test_a_password_that_cannot_be_revealed_is_told_in_fixed_words() -> None:
    """Amended row 'resolver raises': connecting fails (spec datasources 2.3)."""

    def fails(stored: str, key_version: str) -> str:
        message = f"canary {stored}"
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
