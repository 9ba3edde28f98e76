"""Discovery scope: spec engine 17.4, table 21.14."""

import pytest

from fetcher.compat import discovery_scope


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
        ("MYSQL", [], ()),
        ("MONGODB", ["a.b", "c"], ()),
        ("SQLITE", ["main.a"], ()),
        ("unknown", ["a.b"], ("a",)),
    ],
)
def test_the_scope_is_that_of_the_requested_tables(
    source_type: str, tables: list[str], expected: tuple[str, ...]
) -> None:
    assert discovery_scope(tables, source_type) == expected
