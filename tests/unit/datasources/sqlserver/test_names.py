"""Which table a name means (spec datasources 6.2, 7)."""

import pytest

from fetcher.datasources.sqlserver.names import TableNames, quoted
from fetcher.datasources.table_names import TableId


@pytest.mark.parametrize(
    ("name", "schema", "table"),
    [
        ("runs", None, ("dbo", "runs")),
        ("DBO.runs", None, ("dbo", "runs")),
        ("db1.dbo.runs", None, ("dbo", "runs")),
        ("ops.runs", None, ("ops", "runs")),
        ("runs", "ops", ("ops", "runs")),
        (" runs ", None, ("dbo", "runs")),
    ],
)
def test_first_reading(name: str, schema: str | None, table: tuple[str, str]) -> None:
    assert TableNames(schema).candidates(name)[0] == TableId(*table)


@pytest.mark.parametrize("schema", [None, "", "  ", "DBO"])
def test_without_a_schema_of_the_connections_dbo_is_listed(schema: str | None) -> None:
    assert TableNames(schema).listed_schema == TableNames(schema).default_schema == "dbo"


def test_spelling_wins_then_the_only_one_that_differs_in_case() -> None:
    names = TableNames(None)
    two = {TableId("dbo", "Users"), TableId("dbo", "users")}
    assert names.meant("users", two) == (TableId("dbo", "users"),)
    assert names.meant("ORDERS", {TableId("dbo", "Orders")}) == (TableId("dbo", "Orders"),)
    assert names.meant("orders", two) == ()
    assert set(names.meant("USERS", two)) == two


def test_dot_may_be_part_of_a_name() -> None:
    assert TableNames(None).meant("a.b", {TableId("dbo", "a.b")}) == (TableId("dbo", "a.b"),)


def test_quoting() -> None:
    assert quoted("d bo", 'a]b"; DROP') == '[d bo].[a]]b"; DROP]'
