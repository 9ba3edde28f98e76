"""The catalogue's one statement, and its rows as tables."""

from fetcher.datasources.sqlserver.schema import schema_statement, tables_in, tables_statement
from fetcher.datasources.sqlserver.types import Kind
from fetcher.datasources.table_names import TableId


def test_all_tables_of_a_schema_in_one_statement() -> None:
    statement = schema_statement("d'bo", views=False)
    assert "WHERE o.type IN ('U') AND s.name = @P1\n" in statement.text
    assert statement.values == ("d'bo",)
    assert "sys.partitions" not in statement.text


def test_asked_tables_are_looked_for_in_any_case_and_views_where_wanted() -> None:
    statement = tables_statement(["a]b", "c"], views=True)
    assert "WHERE o.type IN ('U', 'V') AND o.name COLLATE Latin1_General_100_CI_AS IN" in (
        statement.text
    )
    assert "(@P1, @P2)" in statement.text
    assert statement.values == ("a]b", "c")
    assert (
        "\nLEFT JOIN (SELECT p.object_id, SUM(p.rows) AS row_count\n"
        " FROM sys.partitions AS p WHERE p.index_id IN (0, 1) GROUP BY p.object_id) AS r\n"
        " ON r.object_id = o.object_id\n"
        "WHERE o.type IN" in statement.text
    )
    assert ",\n r.row_count\nFROM sys.objects AS o\n" in statement.text


def test_same_names_in_two_schemas_are_not_merged() -> None:
    tables = tables_in(
        [
            ("dbo", "t", "id", "int", "int", 4, 0, 1, None, 1200),
            ("dbo", "t", "tel", "varchar", "phone", 20, 1, 0, "Latin1_General_CI_AS", 1200),
            ("ops", "t", "place", None, "geometry", -1, 1, 0, None, None),
        ]
    )
    assert tables[TableId("dbo", "t")].estimated_rows == 1200
    assert tables[TableId("ops", "t")].estimated_rows is None
    key, phone = tables[TableId("dbo", "t")].columns
    assert (key.is_primary_key, key.is_nullable) == (True, False)
    assert (phone.type, phone.kind) == ("phone", Kind.TEXT)
    (place,) = tables[TableId("ops", "t")].columns
    assert place.kind is Kind.LONG_BINARY
