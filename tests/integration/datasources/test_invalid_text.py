"""Text that is not valid in its encoding, in every database that can hold it (case 9).

It fails the job with source, table and column named; ``invalidText: replace`` replaces and counts.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import bson
import psycopg
import pymongo
import pytest
import structlog
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from fetcher.datasources.mysql.charsets import LOSSY
from fetcher.datasources.postgresql.encodings import CODECS
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    connection_to,
    database_in,
    document,
    engines,
    extraction,
    parsed,
    replacing,
    run_sql,
)
from tests.integration.datasources.mariadb import connection_to as connection_to_mariadb
from tests.integration.datasources.mariadb import own_database, running_server
from tests.integration.datasources.mariadb import run_sql as run_mariadb_sql
from tests.integration.datasources.sqlserver import answering, source
from tests.servers.addresses import SqlAddress
from tests.servers.tds import Answer, Column, TdsServer, tds_server

Rows = list[dict[str, object]]


async def failure_of(connection: Connection, folder: Path | None = None) -> tuple[object, ...]:
    async with engines(sqlite_folder=folder) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"t": ["*"]})
    error = caught.value
    return error.source, error.stage, error.reason, error.table, error.column


async def replaced(connection: Connection, folder: Path | None = None) -> tuple[Rows, Rows]:
    """The rows, and what the log says of them."""
    with structlog.testing.capture_logs() as logs:
        async with engines(sqlite_folder=folder) as opened:
            data, notes = await extraction(opened, replacing(connection), {"t": ["*"]})
    told = [dict(each) for each in logs if each["event"] == "invalid_text_replaced"]
    counts: list[int] = [each["characters"] for each in told]
    assert notes.replaced_characters == sum(counts)
    return parsed(data)["t"], told


def told(characters: int) -> Rows:
    return [
        {
            "event": "invalid_text_replaced",
            "log_level": "warning",
            "source": "src",
            "table": "t",
            "characters": characters,
        }
    ]


@pytest.mark.integration
async def test_postgresql_in_sql_ascii(postgres: SqlAddress) -> None:
    with database_in(postgres, "SQL_ASCII") as address:
        run_sql(
            address,
            "CREATE TABLE t (id int, fine text, broken text, list text[], raw bytea)",
            "INSERT INTO t VALUES (1, 'h\u00e9llo', 'plain', '{a}', 'x')",
            "INSERT INTO t VALUES (2, 'h\u00e9llo \ufffd',"
            " convert_from('\\x61f322e282', 'SQL_ASCII'),"
            " ARRAY[convert_from('\\xf3', 'SQL_ASCII')], '\\xf3')",
        )
        connection = connection_to(address)
        failure = await failure_of(connection)
        rows, logged = await replaced(connection)
    assert failure == ("src", "rows", "invalid_text", "t", "broken")
    assert rows == [
        {"id": 1, "fine": "h\u00e9llo", "broken": "plain", "list": "{a}", "raw": "eA=="},
        {"id": 2, "fine": "h\u00e9llo \ufffd", "broken": 'a\ufffd"\ufffd', "list": "{\ufffd}",
         "raw": "8w=="},
    ]  # fmt: skip
    assert logged == told(3)


@pytest.mark.integration
async def test_postgresql_in_sql_ascii_takes_filters_in_utf8(postgres: SqlAddress) -> None:
    with database_in(postgres, "SQL_ASCII") as address:
        run_sql(address, "CREATE TABLE t (a text)", "INSERT INTO t VALUES ('\u00e9'), ('e')")
        async with engines() as opened:
            filters = {"t": {"a": {"eq": ["\u00e9"]}}}
            data = await document(
                opened, replacing(connection_to(address)), {"t": ["a"]}, filters=filters
            )
    assert parsed(data) == {"t": [{"a": "\u00e9"}]}


@pytest.mark.integration
async def test_postgresql_with_a_byte_that_its_encoding_leaves_undefined(
    postgres: SqlAddress,
) -> None:
    with database_in(postgres, "WIN1252") as address:
        run_sql(
            address,
            "CREATE TABLE t (fine text, broken text)",
            "INSERT INTO t VALUES ('\u20ac\u00e9', convert_from('\\x6181', 'WIN1252'))",
        )
        connection = connection_to(address)
        failure = await failure_of(connection)
        rows, logged = await replaced(connection)
    assert failure == ("src", "rows", "invalid_text", "t", "broken")
    assert rows == [{"fine": "\u20ac\u00e9", "broken": "a\ufffd"}]
    assert logged == told(1)


@pytest.mark.integration
async def test_what_comes_next_in_the_same_session_is_read_in_utf8_again(
    postgres: SqlAddress,
) -> None:
    with database_in(postgres, "WIN1252") as address:
        run_sql(
            address,
            "CREATE TABLE t (a text)",
            "INSERT INTO t VALUES (convert_from('\\x6181', 'WIN1252'))",
            'CREATE TABLE "t\u00e9" (a text)',
        )
        connection = replacing(connection_to(address))
        async with engines() as opened:
            data = await document(opened, connection, {"t": ["a"]})
            engine = opened.engine_for([connection], JobOptions())
            schema = await engine.discover_schema(TENANT, "src")
    assert parsed(data) == {"t": [{"a": "a\ufffd"}]}
    assert sorted(table.name for table in schema.tables) == ["t", "t\u00e9"]


@pytest.mark.integration
async def test_postgresql_session_that_read_unconverted_text_serves_the_next_job(
    postgres: SqlAddress,
) -> None:
    with database_in(postgres, "WIN1252") as address:
        run_sql(
            address,
            'CREATE TABLE "t\u00e9" ("\u00f3" text)',
            "INSERT INTO \"t\u00e9\" VALUES (convert_from('\\xe981', 'WIN1252')), ('\u20ac')",
        )
        connection = replacing(connection_to(address))
        fields = {"t\u00e9": ["\u00f3"]}
        filters = {"t\u00e9": {"\u00f3": {"eq": ["\u20ac"]}}}
        async with engines() as opened:
            every = [await document(opened, connection, fields) for _ in range(2)]
            one = await document(opened, connection, fields, filters=filters)
            nowhere = {"t\u00e9": {"\u00f3": {"eq": ["\u4e2d"]}}}
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, fields, filters=nowhere)
    error = caught.value
    assert (error.reason, error.table, error.column) == (
        "invalid_filter_value", "t\u00e9", "\u00f3",
    )  # fmt: skip
    assert [parsed(data) for data in every] == [
        {"t\u00e9": [{"\u00f3": "\u00e9\ufffd"}, {"\u00f3": "\u20ac"}]}
    ] * 2
    assert parsed(one) == {"t\u00e9": [{"\u00f3": "\u20ac"}]}


@pytest.mark.integration
@pytest.mark.parametrize("encoding", sorted(set(CODECS) - {"SQL_ASCII"}))
def test_codecs_read_each_byte_as_postgresql_does(postgres: SqlAddress, encoding: str) -> None:
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        for number in range(1, 256):
            byte = bytes([number])
            try:
                row = connection.execute("SELECT convert_from(%s, %s)", (byte, encoding)).fetchone()
            except psycopg.errors.UntranslatableCharacter:
                row = ("\ufffd",)
            assert row is not None
            assert byte.decode(CODECS[encoding], "replace") == row[0], byte


@pytest.fixture
def damaged(mariadb: SqlAddress, tmp_path: Path) -> Iterator[Connection]:
    """A table whose file was damaged: the server checks what is written, not what is there."""
    del mariadb  # it is installed
    with running_server(tmp_path / "server") as server:
        yield damaged_table(server.admin, tmp_path / "server" / "data")


def damaged_table(admin: SqlAddress, data: Path) -> Connection:
    run_mariadb_sql(admin, "CREATE DATABASE damaged CHARACTER SET utf8mb4")
    address = replace(admin, database="damaged")
    run_mariadb_sql(
        address,
        "CREATE TABLE t (id int, fine varchar(20), broken varchar(20)) ENGINE=MyISAM"
        " CHARACTER SET utf8mb4",
        "INSERT INTO t VALUES (1, 'h\u00e9llo', 'plain'), (2, 'h\u00e9llo', 'AAbroken\"')",
        "FLUSH TABLES",
    )
    (file,) = data.glob("**/t.MYD")
    content = file.read_bytes()
    assert content.count(b"AAbroken") == 1
    file.write_bytes(content.replace(b"AAbroken", b"A\xf3broken"))
    return connection_to_mariadb(address)


@pytest.mark.integration
async def test_mariadb_with_a_damaged_table(damaged: Connection) -> None:
    assert await failure_of(damaged) == ("src", "rows", "invalid_text", "t", "broken")
    rows, logged = await replaced(damaged)
    assert rows == [
        {"id": 1, "fine": "h\u00e9llo", "broken": "plain"},
        {"id": 2, "fine": "h\u00e9llo", "broken": 'A\ufffdbroken"'},
    ]
    assert logged == told(1)


@pytest.fixture
def in_charset(mariadb: SqlAddress) -> Iterator[Callable[[str], Connection]]:
    """Tables with a row for each byte of a charset: the server takes them all."""
    with own_database(mariadb) as address:

        def fill(charset: str) -> Connection:
            rows = ", ".join(f"({number}, X'3F{number:02x}')" for number in range(1, 256))
            run_mariadb_sql(
                address,
                f"CREATE OR REPLACE TABLE t (id int, a varchar(9) CHARACTER SET {charset})",
                f"INSERT INTO t VALUES {rows}",
            )
            return connection_to_mariadb(address)

        yield fill


@pytest.mark.integration
@pytest.mark.parametrize("charset", [name for name, codec in LOSSY.items() if codec])
async def test_mariadb_in_a_charset_that_leaves_bytes_undefined(
    charset: str, in_charset: Callable[[str], Connection]
) -> None:
    """The server itself would write a question mark."""
    connection = in_charset(charset)
    assert await failure_of(connection) == ("src", "rows", "invalid_text", "t", "a")
    rows, logged = await replaced(connection)
    expected = [bytes([0x3F, number]).decode(LOSSY[charset], "replace") for number in range(1, 256)]
    assert [row["a"] for row in rows] == expected
    assert logged == told("".join(expected).count("\ufffd"))


@pytest.mark.integration
@pytest.mark.parametrize("charset", [name for name, codec in LOSSY.items() if not codec])
async def test_mariadb_in_a_charset_that_nobody_else_reads(
    charset: str, in_charset: Callable[[str], Connection]
) -> None:
    for connection in (in_charset(charset), replacing(in_charset(charset))):
        assert await failure_of(connection) == ("src", "rows", "invalid_text", "t", "a")


@pytest.mark.integration
async def test_mariadb_shows_question_marks_that_are_meant(mariadb: SqlAddress) -> None:
    with own_database(mariadb) as address:
        run_mariadb_sql(
            address,
            "CREATE TABLE t (a varchar(9) CHARACTER SET cp1251, b text CHARACTER SET ascii)",
            "INSERT INTO t VALUES ('\u0434\u0430?', 'really?'), (NULL, '')",
        )
        async with engines() as opened:
            data = await document(opened, connection_to_mariadb(address), {"t": ["*"]})
    assert parsed(data)["t"] == [{"a": "\u0434\u0430?", "b": "really?"}, {"a": None, "b": ""}]


async def test_sqlite(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (id int, fine text, broken text)")
        database.execute("INSERT INTO t VALUES (1, 'h\u00e9llo', 'plain')")
        database.execute("INSERT INTO t VALUES (2, 'h\u00e9llo', CAST(x'61f322' AS TEXT))")
        database.commit()
    connection = a_connection(source_type=SourceType.SQLITE, database="a.db")
    failure = await failure_of(connection, tmp_path)
    assert failure == ("src", "rows", "invalid_text", "t", "broken")
    rows, logged = await replaced(connection, tmp_path)
    assert rows == [
        {"id": 1, "fine": "h\u00e9llo", "broken": "plain"},
        {"id": 2, "fine": "h\u00e9llo", "broken": 'a\ufffd"'},
    ]
    assert logged == told(1)


async def test_sqlserver() -> None:
    answer = Answer(
        columns=[Column("int"), Column("varbinary"), Column("varbinary(max)")],
        rows=[
            (1, "h\u00e9 \ufffd".encode("utf-16-le"), "nvarchar:fine".encode("utf-16-le")),
            (2, b"a\0\0\xd8b\0", "nvarchar:\ufffd".encode("utf-16-le") + b"\0\xdc"),
        ],
    )
    table = [("a_id", "int", 4), ("b_broken", "nvarchar", 20), ("c_any", "sql_variant", 8016)]
    server = TdsServer(answer=answering({("dbo", "t"): table}, {"FROM [dbo].[t]": answer}))
    async with tds_server(server):
        failure = await failure_of(source(server))
        rows, logged = await replaced(source(server))
    assert failure == ("src", "rows", "invalid_text", "t", "b_broken")
    assert rows == [
        {"a_id": 1, "b_broken": "h\u00e9 \ufffd", "c_any": "fine"},
        {"a_id": 2, "b_broken": "a\ufffdb", "c_any": "\ufffd\ufffd"},
    ]
    assert logged == told(2)


@pytest.mark.integration
async def test_mongodb(mongo_uri: str, mongo_database: Callable[[], str]) -> None:
    name = mongo_database()
    # drivers write valid text only; the bytes are those of {"_id": 1, "v": {"w": "a?\"b"}}
    valid = bson.encode({"_id": 1, "fine": "h\u00e9llo", "v": {"w": ['a?"b']}})
    with pymongo.MongoClient[RawBSONDocument](
        mongo_uri, serverSelectionTimeoutMS=10_000, document_class=RawBSONDocument
    ) as client:
        host, port = client.address or ("", 0)
        try:
            client[name]["t"].insert_one(RawBSONDocument(valid.replace(b'a?"b', b'a\xf3"b')))
        except OperationFailure:
            pytest.skip("this server stores valid text only; unit tests read the bytes")
    connection = a_connection(source_type=SourceType.MONGODB, host=host, port=port, database=name)
    assert await failure_of(connection) == ("src", "rows", "invalid_text", "t", "v")
    rows, logged = await replaced(connection)
    assert rows == [{"_id": 1, "fine": "h\u00e9llo", "v": {"w": ['a\ufffd"b']}}]
    assert logged == told(1)
