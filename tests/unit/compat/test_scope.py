"""Discovery scope: spec engine 17.4, table 21.14."""

import pytest

from fetcher.compat import SourceNames, discovery_scope


@pytest.mark.parametrize(
    ("source_type", "tables", "expected"),
    [
        ("POSTGRESQL", ["acct.inv", "users"], ("acct", "public")),
        ("POSTGRESQL", ["users"], ("public",)),
        ("POSTGRESQL", ["public.a", "public.b"], ("public",)),
        ("POSTGRESQL", ["acct.inv"], ("acct",)),
        ("POSTGRESQL", ["z.a", "b.a", " c .a", ".x"], ("b", "c", "z")),
        ("POSTGRESQL", [], ()),
        # as in normalization: any case of the default schema, and the catalog is dropped
        ("POSTGRESQL", ["PUBLIC.tx"], ("public",)),
        ("POSTGRESQL", ["db.acct.inv"], ("acct",)),
        ("SQL_SERVER", ["sales.o", "u"], ("dbo", "sales")),
        ("ORACLE", ["HR.E", "DUAL"], ("HR",)),
        ("ORACLE", ["hr.e"], ("HR",)),
        ("ORACLE", ["DUAL"], ()),
        ("MYSQL", ["app.u", "o"], ("app",)),
        ("MYSQL", ["a.x", "a.y", "b.z", "w", " .q"], ("a", "b")),
        ("MYSQL", [], ()),
        ("MONGODB", ["a.b", "c"], ()),
        ("SQLITE", ["main.a"], ()),
        ("unknown", ["a.b"], ("a",)),
    ],
)
def test_the_scope_is_that_of_the_requested_tables(
    source_type: str, tables: list[str], expected: tuple[str, ...]
) -> None:
    assert discovery_scope(tables, SourceNames(source_type)) == expected


@pytest.mark.parametrize(
    ("source_type", "own_schema", "tables", "expected"),
    [
        ("POSTGRESQL", "ops", ["runs"], ("ops",)),
        ("POSTGRESQL", "Public", ["runs"], ("public",)),
        ("POSTGRESQL", "ops", ["OPS.runs", "PUBLIC.tx"], ("ops", "public")),
        ("POSTGRESQL", "ops", ["acct.inv"], ("acct",)),
        ("SQL_SERVER", "sales", ["o", "dbo.u"], ("dbo", "sales")),
        ("ORACLE", "app", ["HR.E", "DUAL"], ("APP", "HR")),
        ("ORACLE", "app", ["HR.E"], ("HR",)),
        ("MYSQL", "app", ["o"], ()),
        ("MONGODB", "app", ["o"], ()),
    ],
)
def test_bare_names_lie_in_the_schema_that_the_connection_names(
    source_type: str, own_schema: str, tables: list[str], expected: tuple[str, ...]
) -> None:
    """Spec datasources 6.2: the connection's schema is the default one."""
    assert discovery_scope(tables, SourceNames(source_type, own_schema)) == expected
