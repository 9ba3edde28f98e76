"""Requests and schemas meet in the Engine under normalized names (spec engine 17, table 21.14)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest

from fetcher.compat import (
    SourceNames,
    normalized_request,
    normalized_table,
    prepared_snapshot,
)
from fetcher_engine import (
    ConnectionDescriptor,
    Engine,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
    SchemaSnapshot,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

TENANT = TenantContext.new("default")

Fields = Mapping[str, Sequence[str]]
Filters = Mapping[str, Mapping[str, Mapping[str, tuple[object, ...]]]]
Rows = Mapping[str, Sequence[Mapping[str, object]]]


class Source:
    """One source ``db`` whose discovery yields ``discovered``, prepared as a Worker wants it."""

    def __init__(self, source_type: str, discovered: Fields, rows: Rows | None = None) -> None:
        self.names = SourceNames(source_type)
        schema = prepared_snapshot(
            SchemaSnapshot("", tuple(TableSnapshot(n, tuple(f)) for n, f in discovered.items())),
            config_name="db",
            source=self.names,
            filter_system=True,
            normalize=True,
        )
        self.factory = MemoryConnectorFactory(MemorySource(schema=schema, rows=rows or {}))
        store = MemoryConnectionStore()
        store.put(TENANT, ConnectionDescriptor(config_name="db", type=source_type))
        self.engine = Engine(MemoryRegistry({source_type: self.factory}), connection_store=store)

    async def extract(self, asked: Fields, filters: Filters | None = None) -> bytes:
        fields, conditions = normalized_request(
            {"db": asked}, {"db": filters or {}}, {"db": self.names}
        )
        request = ExtractionRequest(mapped_fields=fields, filters=conditions)
        plan = await self.engine.plan_extraction(TENANT, request)
        result = await self.engine.execute_extraction(plan)
        return result.document


@pytest.mark.parametrize("asked", ["public.users", "PUBLIC.users", "users", "db.public.users"])
async def test_the_default_schema_may_be_named_or_not(asked: str) -> None:
    source = Source("POSTGRESQL", {"public.users": ["id"]}, {"users": [{"id": 1}]})
    assert await source.extract({asked: ["id"]}) == b'{"db":{"users":[{"id":1}]}}'


async def test_oracle_names_meet_in_upper_case() -> None:
    source = Source(
        "ORACLE",
        {"accounts": ["id", "bal"], "hr.emp": ["n"]},
        {"ACCOUNTS": [{"ID": 7}], "HR.EMP": [{"N": 8}]},
    )
    document = await source.extract({"Accounts": ["id"], "hr.Emp": ["N"]})
    assert document == b'{"db":{"ACCOUNTS":[{"ID":7}],"HR.EMP":[{"N":8}]}}'


@pytest.mark.parametrize(
    ("source_type", "asked"),
    [
        ("POSTGRESQL", "public.orders"),
        ("POSTGRESQL", "Users"),
        ("POSTGRESQL", "acct.users"),
        ("POSTGRESQL", "a.b.c.users"),
        ("SQL_SERVER", "dbo.orders"),
        ("ORACLE", "hr.users"),
        ("MYSQL", "Users"),
        ("MONGODB", "public.users"),
        ("POSTGRESQL", "pg_catalog.x"),
    ],
)
async def test_a_missing_table_is_missing_in_every_form(source_type: str, asked: str) -> None:
    source = Source(source_type, {"users": ["id"], "pg_catalog.x": ["id"]})
    with pytest.raises(EngineError) as refused:
        await source.extract({asked: ["id"]})
    assert refused.value.category is ErrorCategory.VALIDATION
    (failure,) = refused.value.failures
    named = normalized_table(asked, source.names)
    assert (failure.type, failure.config_name, failure.table) == ("table_not_found", "db", named)


async def test_conditions_reach_the_connector_as_the_host_made_them() -> None:
    """Row 'nested filter mapping with typed leaves': nothing is skipped, nothing is converted."""
    conditions: dict[str, dict[str, tuple[object, ...]]] = {
        "id": {"in": (1, 9007199254740993), "ne": (None,)},
        "Total": {"gte": (Decimal("12.50"),)},
        "open": {"eq": (True,)},
    }
    source = Source("ORACLE", {"orders": ["id", "total", "open"]})
    await source.extract({"orders": ["id"]}, {"ORDERS": conditions})
    connector = source.factory.last_built
    assert connector is not None
    (received,) = connector.requests
    assert received.filters == {
        "ORDERS": {
            "ID": conditions["id"],
            "TOTAL": conditions["Total"],
            "OPEN": conditions["open"],
        }
    }
    handed_over = received.filters["ORDERS"]
    assert handed_over["TOTAL"] is conditions["Total"]
    assert handed_over["OPEN"] is conditions["open"]
