"""Which schemas the tables of a request are looked for in: spec engine 17.4, table 21.14."""

import pytest

from fetcher.datasources.oracle.names import TableNames as OracleNames
from fetcher.datasources.postgresql.names import TableNames as PostgresqlNames
from fetcher.datasources.sqlserver.names import TableNames as SqlServerNames
from fetcher.datasources.table_names import SchemaTableNames


def likeliest_schemas(names: SchemaTableNames) -> set[str]:
    assert names.requested is not None
    return {names.candidates(name)[0].schema for name in names.requested}


@pytest.mark.parametrize(
    ("own_schema", "tables", "schemas"),
    [
        (None, ["acct.inv", "users"], {"acct", "public"}),
        (None, ["users"], {"public"}),
        (None, ["public.a", "b"], {"public"}),
        (None, ["a.x", "a.y", "b.z", "w"], {"a", "b", "public"}),
        (None, ["PUBLIC.tx"], {"public"}),
        (None, ["db.acct.inv"], {"acct"}),
        (None, [], set()),
        ("ops", ["runs"], {"ops"}),
        ("ops", ["ops.runs", "public.tx", "acct.inv"], {"ops", "public", "acct"}),
    ],
)
def test_a_table_of_postgresql_is_looked_for_in_its_schema(
    own_schema: str | None, tables: list[str], schemas: set[str]
) -> None:
    assert likeliest_schemas(PostgresqlNames(own_schema, tables)) == schemas


@pytest.mark.parametrize(
    ("own_schema", "tables", "schemas"),
    [
        (None, ["sales.o", "u"], {"sales", "dbo"}),
        ("sales", ["o", "dbo.u"], {"sales", "dbo"}),
    ],
)
def test_a_table_of_sql_server_is_looked_for_in_its_schema(
    own_schema: str | None, tables: list[str], schemas: set[str]
) -> None:
    assert likeliest_schemas(SqlServerNames(own_schema, tables)) == schemas


@pytest.mark.parametrize(
    ("own_schema", "tables", "owners"),
    [
        (None, ["HR.E", "DUAL"], ("HR", "READER")),
        (None, ["hr.e"], ("HR", "READER", "hr")),
        (None, ["DUAL"], ("READER",)),
        ("app", ["HR.E", "DUAL"], ("APP", "HR", "app")),
    ],
)
def test_tables_of_oracle_are_looked_for_under_their_owners_and_the_default_one(
    own_schema: str | None, tables: list[str], owners: tuple[str, ...]
) -> None:
    names = OracleNames(own_schema, dict.fromkeys(tables, ("id",)))
    assert names.owners("READER", names.requested) == owners
