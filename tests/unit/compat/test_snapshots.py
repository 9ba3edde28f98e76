"""Snapshots: spec engine 17.3, table 21.14."""

from datetime import UTC, datetime

import pytest

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, TableSnapshot

CAPTURED_AT = datetime(2026, 3, 14, tzinfo=UTC)


def a_schema(*names: str, config_name: str = "db") -> SchemaSnapshot:
    tables = tuple(TableSnapshot(name, ("id", "b", "a")) for name in names)
    return SchemaSnapshot(config_name, tables, CAPTURED_AT)


def prepared(
    schema: SchemaSnapshot | None, *, source_type: str, filter_system: bool, normalize: bool
) -> SchemaSnapshot:
    return prepared_snapshot(
        schema,
        config_name="asked",
        source=SourceNames(source_type),
        filter_system=filter_system,
        normalize=normalize,
    )


@pytest.mark.parametrize(
    ("filter_system", "normalize", "expected"),
    [
        (False, False, ("acct.inv", "pg_catalog.x", "public.users")),
        (True, False, ("acct.inv", "public.users")),
        (True, True, ("acct.inv", "users")),
    ],
)
def test_the_call_sites_get_what_they_ask_for(
    filter_system: bool, normalize: bool, expected: tuple[str, ...]
) -> None:
    snapshot = prepared(
        a_schema("public.users", "acct.inv", "pg_catalog.x"),
        source_type="POSTGRESQL",
        filter_system=filter_system,
        normalize=normalize,
    )
    assert tuple(table.name for table in snapshot.tables) == expected
    assert all(table.fields == ("a", "b", "id") for table in snapshot.tables)
    assert (snapshot.config_name, snapshot.captured_at) == ("db", CAPTURED_AT)


def test_no_schema_is_an_empty_snapshot_under_the_given_name() -> None:
    snapshot = prepared(None, source_type="MYSQL", filter_system=True, normalize=True)
    assert snapshot == SchemaSnapshot("asked")


def test_a_schema_without_a_name_gets_the_given_one() -> None:
    snapshot = prepared(
        a_schema(config_name=""), source_type="MYSQL", filter_system=True, normalize=True
    )
    assert snapshot.config_name == "asked"


def test_tables_that_meet_under_one_name_join_their_fields() -> None:
    schema = SchemaSnapshot(
        "db",
        (
            TableSnapshot("hr.Emp", ("Id", "id"), (ColumnSnapshot("Id", "NUMBER"),)),
            TableSnapshot(
                "HR.EMP",
                ("NAME", "ID"),
                (ColumnSnapshot("NAME", "VARCHAR2"), ColumnSnapshot("ID", "FLOAT")),
            ),
        ),
    )
    snapshot = prepared(schema, source_type="ORACLE", filter_system=True, normalize=True)
    assert snapshot.tables == (
        TableSnapshot(
            "HR.EMP",
            ("ID", "NAME"),
            (ColumnSnapshot("NAME", "VARCHAR2"), ColumnSnapshot("ID", "FLOAT")),
        ),
    )


def test_rows_are_estimated_where_one_table_has_the_name() -> None:
    schema = SchemaSnapshot(
        "db",
        (
            TableSnapshot("hr.Emp", ("ID",), (), 5),
            TableSnapshot("HR.EMP", ("ID",), (), 7),
            TableSnapshot("hr.runs", ("ID",), (), 0),
        ),
    )
    for normalize, expected in (
        (True, [("HR.EMP", None), ("HR.RUNS", 0)]),
        (False, [("HR.EMP", 7), ("hr.Emp", 5), ("hr.runs", 0)]),
    ):
        snapshot = prepared(schema, source_type="ORACLE", filter_system=True, normalize=normalize)
        assert [(table.name, table.estimated_rows) for table in snapshot.tables] == expected


def test_sqlite_names_stay_and_its_own_tables_go() -> None:
    snapshot = prepared(
        a_schema("Orders", "sqlite_sequence", "main.x"),
        source_type="SQLITE",
        filter_system=True,
        normalize=True,
    )
    assert snapshot.table_names() == ("Orders", "main.x")
