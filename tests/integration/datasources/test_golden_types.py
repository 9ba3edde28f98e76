"""The golden matrix of types: each value of tests/golden/types, read under each option."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pymongo
import pytest
from pymongo.errors import OperationFailure

from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection, SourceType
from scripts.types_document.golden import OPTION_SETS, GoldenValue, exact_json, matrix
from tests.integration.datasources import harness, mariadb
from tests.integration.datasources.harness import a_connection, document, engines
from tests.integration.datasources.mariadb import own_database
from tests.integration.datasources.sqlserver import answering, source
from tests.servers.addresses import SqlAddress
from tests.servers.tds import Answer, Column, TdsServer, tds_server
from tests.unit.datasources.mongodb.test_golden_types import bson_of

NOT_STORED_EVERYWHERE = {
    '{"$date":{"$numberLong":"253402300800000"}}',
    '{"$date":{"$numberLong":"-62135596800001"}}',
}
"""By MongoDB, but not by every server that is compatible with it."""

FIELDS_A_TABLE = 50
"""As many as a request may name."""

Mistake = tuple[str, str, str, object, object]


def parts_of(values: Sequence[GoldenValue]) -> Iterator[dict[str, GoldenValue]]:
    for start in range(0, len(values), FIELDS_A_TABLE):
        part = values[start : start + FIELDS_A_TABLE]
        yield {f"c{number:03}": value for number, value in enumerate(part)}


async def mistakes_in(
    opened: RequestEngines, connection: Connection, columns: dict[str, GoldenValue]
) -> list[Mistake]:
    """What the table ``golden`` gives otherwise: a row of values, and a row of NULLs."""
    found: list[Mistake] = []
    for name, options in OPTION_SETS.items():
        data = await document(opened, connection, {"golden": list(columns)}, options=options)
        row, empty = exact_json(data)["src"]["golden"]
        assert empty == dict.fromkeys(columns)
        found += [
            (value.declared, value.value, name, row[column], wanted)
            for column, value in columns.items()
            if row[column] != (wanted := exact_json(value.expected[name]))
        ]
    return found


async def mistakes_in_tables(
    connection: Connection,
    values: Sequence[GoldenValue],
    fill: Callable[[dict[str, GoldenValue]], None],
) -> list[Mistake]:
    found: list[Mistake] = []
    async with engines() as opened:
        for columns in parts_of(values):
            fill(columns)
            found += await mistakes_in(opened, connection, columns)
    return found


@pytest.mark.integration
async def test_postgresql(postgres_database: Callable[[], SqlAddress]) -> None:
    address = postgres_database()
    golden = matrix("postgresql")
    harness.run_sql(address, *golden.setup)

    def fill(columns: dict[str, GoldenValue]) -> None:
        declared = ", ".join(f"{name} {value.declared}" for name, value in columns.items())
        kinds = {"serial": "int"}
        values = ", ".join(
            f"({value.value})::{kinds.get(value.declared, value.declared)}"
            for value in columns.values()
        )
        nullable = [n for n, value in columns.items() if value.declared == "serial"]
        harness.run_sql(
            address,
            "DROP TABLE IF EXISTS golden",
            f"CREATE TABLE golden ({declared})",
            *(
                f"ALTER TABLE golden ALTER {n} DROP DEFAULT, ALTER {n} DROP NOT NULL"
                for n in nullable
            ),
            f"INSERT INTO golden VALUES ({values})",
            "INSERT INTO golden DEFAULT VALUES",
        )

    assert await mistakes_in_tables(harness.connection_to(address), golden.values, fill) == []


@pytest.fixture
def mariadb_database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


@pytest.mark.integration
async def test_mariadb(mariadb_database: SqlAddress) -> None:
    address = mariadb_database

    def fill(columns: dict[str, GoldenValue]) -> None:
        declared = ", ".join(f"{name} {value.declared}" for name, value in columns.items())
        values = ", ".join(value.value for value in columns.values())
        mariadb.run_sql(
            address,
            "DROP TABLE IF EXISTS golden",
            f"CREATE TABLE golden ({declared})",
            "SET STATEMENT sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00' FOR"
            f" INSERT INTO golden VALUES ({values})",
            f"INSERT INTO golden VALUES ({', '.join(['NULL'] * len(columns))})",
        )

    values = matrix("mysql").values
    assert await mistakes_in_tables(mariadb.connection_to(address), values, fill) == []


@pytest.mark.integration
async def test_mongodb(mongo_uri: str, mongo_database: Callable[[], str]) -> None:
    database = mongo_database()
    # what drivers no longer write is read from its bytes, in the unit tests
    values = [value for value in matrix("mongodb").values if not value.sent]
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as client:
        host, port = client.address or ("", 0)
        refused = []
        for number, value in enumerate(values):
            try:
                client[database]["golden"].insert_one({"_id": number, "v": bson_of(value)})
            except OperationFailure:
                refused.append(number)
    connection = a_connection(
        source_type=SourceType.MONGODB, host=host, port=port, database=database
    )
    mistakes = []
    async with engines() as opened:
        for name, options in OPTION_SETS.items():
            data = await document(opened, connection, {"golden": ["v"]}, options=options)
            rows = {int(row["_id"].text): row["v"] for row in exact_json(data)["src"]["golden"]}
            assert len(rows) == len(values) - len(refused)
            mistakes += [
                (value.declared, value.value, name, rows[number], wanted)
                for number, value in enumerate(values)
                if number not in refused
                and rows[number] != (wanted := exact_json(value.expected[name]))
            ]
    assert mistakes == []
    assert {values[number].value for number in refused} <= NOT_STORED_EVERYWHERE


async def test_sqlite(tmp_path: Path) -> None:
    values = matrix("sqlite").values
    declared = ", ".join(f"c{number:03} {value.declared}" for number, value in enumerate(values))
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute(f"CREATE TABLE golden ({declared})")
        database.execute(f"INSERT INTO golden VALUES ({', '.join(each.value for each in values)})")
        database.execute("INSERT INTO golden DEFAULT VALUES")
        database.commit()
    connection = a_connection(source_type=SourceType.SQLITE, database="a.db")
    (columns,) = parts_of(values)
    async with engines(sqlite_folder=tmp_path) as opened:
        assert await mistakes_in(opened, connection, columns) == []


async def test_sqlserver() -> None:
    """By the real driver, from a server that speaks its protocol: no SQL Server made the cells."""
    mistakes = []
    for columns in parts_of(matrix("sqlserver").values):
        answer = Answer(
            columns=[Column(_TRAVELS.get(each.sent["wire"], each.sent["wire"]))
                     for each in columns.values()],
            rows=[[_cell(each) for each in columns.values()], [None] * len(columns)],
        )  # fmt: skip
        table = [(name, each.type, each.sent["bytes"]) for name, each in columns.items()]
        server = TdsServer(
            answer=answering({("dbo", "golden"): table}, {"FROM [dbo].[golden]": answer})
        )
        async with tds_server(server), engines() as opened:
            mistakes += await mistakes_in(opened, source(server), columns)
    assert mistakes == []


_TRAVELS = {"utf16": "varbinary", "utf16(max)": "varbinary(max)"}


def _cell(value: GoldenValue) -> object:
    wire, cell = value.sent["wire"], value.sent["cell"]
    if wire in _TRAVELS:
        return str(cell).encode("utf-16-le")
    return bytes.fromhex(cell) if wire.startswith("varbinary") else cell
