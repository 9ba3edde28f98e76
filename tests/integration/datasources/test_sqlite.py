"""SQLite files as sources: what is read, how, and from where (design section 8)."""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
import trio

from fetcher.datasources.sqlite.connect import SqliteFolder
from fetcher.datasources.sqlite.session import Session
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    document,
    engines,
    parsed,
    rows_of,
)

Make = Callable[..., Connection]


def a_source(name: str) -> Connection:
    return a_connection(source_type=SourceType.SQLITE, database=name)


def fill(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


async def test_storage_classes_decide_how_values_are_written(tmp_path: Path) -> None:
    fill(
        tmp_path / "a.db",
        """CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(10,2), day DATE, doc JSON,
         raw BLOB, any, ok BOOLEAN)""",
        """INSERT INTO t VALUES (9007199254740993, 12.50, '2031-04-05', '{"a":1}', x'DEADBEEF',
         'text', 1)""",
        """INSERT INTO t VALUES (-9223372036854775808, '12.5x', 20310405, NULL, '', 9e999, 0)""",
        "INSERT INTO t VALUES (3, 0.1, NULL, NULL, x'', -9e999, NULL)",
        r"""INSERT INTO t
         VALUES (4, 1e300, NULL, NULL, NULL, 'q"\ ' || char(10, 0, 127, 8232), 2)""",
    )
    async with engines(sqlite_folder=tmp_path) as opened:
        data = await document(opened, a_source("a.db"), {"t": ["*"]})
        again = await document(
            opened, a_source("a.db"), {"t": ["*"]}, options=JobOptions(values="natural")
        )
        quoted = await rows_of(
            opened, a_source("a.db"), "t", ["id"], options=JobOptions(bigint="string")
        )
    assert again == data
    assert sorted(parsed(data)["t"], key=lambda row: row["id"]) == [
        {"any": "Infinity", "day": 20310405, "doc": None, "id": -9223372036854775808, "ok": 0,
         "price": "12.5x", "raw": ""},
        {"any": "-Infinity", "day": None, "doc": None, "id": 3, "ok": None, "price": Decimal("0.1"),
         "raw": ""},
        {"any": 'q"\\ \n\0\x7f\u2028', "day": None, "doc": None, "id": 4, "ok": 2,
         "price": Decimal("1e300"), "raw": None},
        {"any": "text", "day": "2031-04-05", "doc": '{"a":1}', "id": 9007199254740993, "ok": 1,
         "price": Decimal("12.5"), "raw": "3q2+7w=="},
    ]  # fmt: skip
    assert {"id": "9007199254740993"} in quoted
    assert {"id": 3} in quoted


async def test_discovery_lists_ordinary_tables_only(tmp_path: Path) -> None:
    fill(
        tmp_path / "a.db",
        "CREATE TABLE z (b TEXT NOT NULL, a INT, g AS (a + 1), PRIMARY KEY (a)) WITHOUT ROWID",
        'CREATE TABLE "a.b ""x""" (v INTEGER PRIMARY KEY AUTOINCREMENT)',
        "CREATE VIEW seen AS SELECT * FROM z",
        "CREATE VIRTUAL TABLE words USING fts5(body)",
        'INSERT INTO "a.b ""x""" VALUES (5)',
    )
    async with engines(sqlite_folder=tmp_path) as opened:
        engine = opened.engine_for([a_source("a.db")], JobOptions())
        snapshot = await engine.discover_schema(TENANT, "src")
        assert await rows_of(opened, a_source("a.db"), 'a.b "x"', ["v"]) == [{"v": 5}]
    async with engines(sqlite_folder=tmp_path, include_views=True) as opened:
        rows = await rows_of(opened, a_source("a.db"), "seen", ["*"])
    assert rows == []
    assert [(t.name, t.fields) for t in snapshot.tables] == [
        ('a.b "x"', ("v",)),
        ("z", ("a", "b", "g")),
    ]
    columns = {column.name: column for column in snapshot.tables[1].columns}
    assert (columns["a"].primary_key, columns["b"].nullable) == (True, False)
    assert columns["b"].type == "TEXT"


Condition = Mapping[str, Sequence[object]]

CASES: list[tuple[Mapping[str, Condition], list[int]]] = [
    ({"s": {"eq": ["open"]}}, [1]),
    ({"s": {"eq": ["open", "late"]}}, [1, 2]),
    ({"s": {"eq": [None]}}, [4]),
    ({"s": {"ne": ["open", "late"]}}, [3, 5, 6, 7, 8]),
    ({"s": {"ne": [None]}}, [1, 2, 3, 5, 6, 7, 8]),
    ({"s": {"in": ["open", None]}}, [1, 4]),
    ({"s": {"nin": ["open", None]}}, [2, 3, 5, 6, 7, 8]),
    ({"n": {"gt": [7]}}, [8]),
    ({"n": {"gte": [7]}}, [7, 8]),
    ({"n": {"lt": [2]}}, [1]),
    ({"n": {"lte": [2]}}, [1, 2]),
    ({"n": {"gt": [2], "lte": [4]}}, [3, 4]),
    ({"n": {"between": [2, 4]}}, [2, 3, 4]),
    ({"n": {"gt": [Decimal("7.5")]}}, [8]),
    ({"n": {"eq": ["7"]}}, [7]),
    ({"big": {"eq": [9007199254740993]}}, [1]),
    ({"big": {"eq": [9007199254740992]}}, []),
    ({"price": {"eq": [Decimal("0.1")]}}, [1]),
    ({"b": {"eq": [True]}}, [1]),
    ({"s": {"like": ["%ana%"]}}, [3]),
    ({"s": {"like": ["op%", "la%"]}}, [1, 2]),
    ({"s": {"like": ["a\\_b"]}}, [7]),
    ({"s": {"like": ["a_b"]}}, [7, 8]),
    ({"s": {"like": ["%_\\"]}}, []),
    ({"s": {"eq": ["x'; DROP TABLE t; --"]}}, [5]),
    ({"raw": {"eq": ["vu8="]}}, [1]),
    ({"ts": {"between": ["2031-03-01", "2031-03-31"]}}, [1]),
    ({"s": {"is_null": [True]}}, [4]),
    ({"s": {"not_null": [True]}, "n": {"lt": [5]}}, [1, 2, 3]),
    ({"s": {"ne": ["open"]}, "n": {"lte": [3]}}, [2, 3]),
]


@pytest.fixture
def filtered(tmp_path: Path) -> Connection:
    fill(
        tmp_path / "f.db",
        """CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT, big INT, price REAL, b BOOLEAN, raw BLOB,
         ts DATETIME)""",
        """INSERT INTO t VALUES (1, 'open', 9007199254740993, 0.1, 1, x'BEEF',
         '2031-03-31 23:59:59.9999'), (2, 'late', 5, 2, 0, NULL, '2031-04-01 00:00:00')""",
        """INSERT INTO t (n, s) VALUES (3, 'banana'), (4, NULL), (5, 'x''; DROP TABLE t; --'),
         (6, '50%'), (7, 'a_b'), (8, 'a\\b')""".replace("\\\\", "\\"),
    )
    return a_source("f.db")


async def test_every_operator_gives_its_rows(filtered: Connection, tmp_path: Path) -> None:
    wrong = []
    async with engines(sqlite_folder=tmp_path) as opened:
        for where, wanted in CASES:
            rows = await rows_of(opened, filtered, "t", ["n"], where=where)
            if sorted(row["n"] for row in rows) != wanted:
                wrong.append((where, [row["n"] for row in rows], wanted))
    assert wrong == []


@pytest.mark.parametrize(
    ("field", "condition", "reason"),
    [
        ("raw", {"eq": ["***"]}, "invalid_filter_value"),
        ("s", {"eq": ["\ud800"]}, "invalid_filter_value"),
        ("price", {"eq": [10**400]}, "invalid_filter_value"),
        ("n", {"between": [10]}, "invalid_filter"),
        ("n", {"equals": [1]}, "invalid_filter"),
    ],
)
async def test_what_cannot_be_applied_fails_and_names_the_field(
    filtered: Connection, tmp_path: Path, field: str, condition: Condition, reason: str
) -> None:
    async with engines(sqlite_folder=tmp_path) as opened:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, filtered, "t", ["n"], where={field: condition})
    found = (caught.value.reason, caught.value.table, caught.value.column)
    assert found == (reason, "t", field)


# --- where a file may lie -------------------------------------------------------------------


async def failure_of(folder: Path, name: str) -> tuple[str, str]:
    async with engines(sqlite_folder=folder) as opened:
        engine = opened.engine_for([a_source(name)], JobOptions())
        with pytest.raises(EngineError) as caught:
            await engine.test_connection(TENANT, "src")
    assert caught.value.category is ErrorCategory.CONNECT
    assert str(folder) not in repr((caught.value, vars(caught.value)))
    return str(caught.value.stage), str(caught.value.reason)


async def test_only_regular_files_below_the_folder_are_opened(tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    (folder / "deep").mkdir(parents=True)
    outside = tmp_path / "secret.db"
    fill(outside, "CREATE TABLE t (a)")
    fill(folder / "deep" / "odd ?mode=rwc#%41.db", "CREATE TABLE t (a)")
    (folder / "link.db").symlink_to(outside)
    (folder / "round").symlink_to(folder / "round")
    (folder / "inside.db").symlink_to(folder / "deep" / "odd ?mode=rwc#%41.db")
    (folder / "text.db").write_text("this is no database" * 100, encoding="utf-8")
    os.mkfifo(folder / "fifo")
    refused = ("session", "path_refused")
    for name in (
        "../secret.db",
        str(outside),
        "link.db",
        "deep",
        "fifo",
        "",
        "deep/../../secret.db",
    ):
        assert await failure_of(folder, name) == refused, name
    for device in ("null", "zero"):
        assert await failure_of(Path("/dev"), device) == refused, device
    for name in ("missing.db", "nul\0.db", "round"):
        assert await failure_of(folder, name) == ("session", "database_missing"), name
    assert await failure_of(folder, "text.db") == ("session", "protocol")
    async with engines(sqlite_folder=folder) as opened:
        for name in ("deep/odd ?mode=rwc#%41.db", "inside.db", str(folder / "inside.db")):
            engine = opened.engine_for([a_source(name)], JobOptions())
            assert (await engine.test_connection(TENANT, "src")).success


async def test_without_a_folder_there_are_no_sqlite_sources() -> None:
    async with engines() as opened:
        engine = opened.engine_for([a_source("a.db")], JobOptions())
        with pytest.raises(EngineError) as caught:
            await engine.test_connection(TENANT, "src")
    assert (caught.value.category, caught.value.reason) == (ErrorCategory.CONNECT, "type_off")


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '/etc/passwd' AS x",
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "CREATE TEMP TABLE x (a)",
        "PRAGMA writable_schema = ON",
        "PRAGMA trusted_schema = ON",
        "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/x'",
    ],
)
async def test_the_connection_can_read_and_nothing_else(tmp_path: Path, statement: str) -> None:
    fill(tmp_path / "a.db", "CREATE TABLE t (a)")
    opened = await Session.open(
        SqliteFolder(tmp_path), "a.db", statement_seconds=5, max_cell_bytes=1000
    )
    try:
        with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|prohibited|denied"):
            opened._connection.execute(statement)
    finally:
        await opened.close()


# --- ends -----------------------------------------------------------------------------------


async def test_all_tables_are_read_in_one_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(
        path,
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE t (a)",
        "CREATE TABLE u (a)",
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 50000) SELECT printf('%040d', i) FROM n",
    )
    writer = sqlite3.connect(path)
    pieces: list[bytes] = []

    async def write(piece: bytes | memoryview) -> None:
        if not pieces:
            writer.execute("INSERT INTO u VALUES (1)")
            writer.commit()
        pieces.append(bytes(piece))

    try:
        async with engines(sqlite_folder=tmp_path) as opened:
            engine = opened.engine_for([a_source("a.db")], JobOptions())
            fields = {"t": ["a"], "u": ["a"]}
            plan = await engine.plan_extraction(
                TENANT, ExtractionRequest(mapped_fields={"src": fields})
            )
            await engine.stream_extraction(plan, write)
    finally:
        writer.close()
    tables = parsed(b"".join(pieces))
    assert len(tables["t"]) == 50_000
    assert tables["u"] == []


async def test_a_statement_is_stopped_when_its_job_is_cancelled(tmp_path: Path) -> None:
    fill(
        tmp_path / "a.db",
        "CREATE TABLE t (a)",
        "CREATE TABLE u AS SELECT 1 AS x",
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 300000) SELECT printf('%0400d', i) FROM n",
    )
    where = {"a": {"like": [f"%{number}%x" for number in range(1000)]}}
    async with engines(sqlite_folder=tmp_path) as opened:
        started = trio.current_time()
        with trio.move_on_after(0.3) as scope:
            await rows_of(opened, a_source("a.db"), "t", ["a"], where=where)
        assert scope.cancelled_caught
        assert trio.current_time() - started < 2
        with pytest.raises(EngineError) as caught:
            async with engines(sqlite_folder=tmp_path, query_timeout_seconds=0.2) as impatient:
                await rows_of(impatient, a_source("a.db"), "t", ["a"], where=where)
    assert caught.value.reason == "timeout"


async def test_locked_file_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(path, "CREATE TABLE t (a)")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        async with engines(sqlite_folder=tmp_path, lock_timeout_seconds=0.2) as opened:
            with pytest.raises(EngineError) as caught:
                await rows_of(opened, a_source("a.db"), "t", ["a"])
            assert caught.value.reason == "lock_timeout"
    finally:
        holder.execute("ROLLBACK")
        holder.close()


async def test_bad_cells_fail_with_table_and_column(tmp_path: Path) -> None:
    fill(
        tmp_path / "a.db",
        "CREATE TABLE t (id, broken)",
        "INSERT INTO t VALUES (1, CAST(x'F3' AS TEXT))",
        "CREATE TABLE u (id, large)",
        "INSERT INTO u VALUES (1, zeroblob(2000))",
    )
    async with engines(sqlite_folder=tmp_path, max_cell_bytes=1000) as opened:
        for table, reason, column in (
            ("t", "invalid_text", "broken"),
            ("u", "cell_too_large", "large"),
        ):
            with pytest.raises(EngineError) as caught:
                await document(opened, a_source("a.db"), {table: ["*"]})
            found = (caught.value.stage, caught.value.reason, caught.value.table)
            assert (*found, caught.value.column) == ("rows", reason, table, column)


async def test_schema_that_changed_after_planning_ends_the_job(tmp_path: Path) -> None:
    fill(tmp_path / "a.db", "CREATE TABLE t (a, b)")
    async with engines(sqlite_folder=tmp_path) as opened:
        engine = opened.engine_for([a_source("a.db")], JobOptions())
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {"t": ["b"]}})
        )
        fill(tmp_path / "a.db", "ALTER TABLE t DROP COLUMN b")
        with pytest.raises(EngineError) as caught:
            await engine.execute_extraction(plan)
    assert (caught.value.reason, caught.value.table) == ("schema changed", "t")


async def test_names_in_another_case_mean_the_only_one_there_is(tmp_path: Path) -> None:
    fill(
        tmp_path / "a.db",
        'CREATE TABLE "We""ird" ("Select" INT)',
        'INSERT INTO "We""ird" VALUES (3)',
    )
    where = {"SELECT": {"eq": [3]}}
    async with engines(sqlite_folder=tmp_path) as opened:
        rows = await rows_of(opened, a_source("a.db"), 'WE"IRD', ["select"], where=where)
    assert rows == [{"Select": 3}]
