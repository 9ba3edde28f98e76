"""Drivers that read in a thread give way at each read, also of a short result."""

import pytest

from fetcher.datasources.giving_way import GivesWay
from fetcher.domain.connections import Connection
from fetcher.domain.jobs import JobOptions
from tests.integration.datasources import mariadb as mysql
from tests.integration.datasources.harness import TENANT, engines
from tests.integration.datasources.sqlserver import answering
from tests.integration.datasources.sqlserver import source as sql_server
from tests.servers.addresses import SqlAddress
from tests.servers.tds import TdsServer, tds_server

pytestmark = pytest.mark.integration

TABLES = 200
COLUMNS = 8


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[GivesWay]:
    """Those after which a driver was ready to pause."""
    asked: list[GivesWay] = []

    def count(way: GivesWay) -> None:
        asked.append(way)

    monkeypatch.setattr(GivesWay, "__call__", count)
    return asked


async def listed(connection: Connection) -> int:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        return len((await engine.discover_schema(TENANT, connection.config_name)).tables)


async def test_mysql_gives_way_while_it_lists_tables(
    mariadb: SqlAddress, reads: list[GivesWay]
) -> None:
    columns = ", ".join(f"a_column_of_the_table_{n} int" for n in range(COLUMNS))
    with mysql.own_database(mariadb) as database:
        tables = [f"CREATE TABLE t{n} (id int, {columns}) ENGINE=MEMORY" for n in range(TABLES)]
        mysql.run_sql(database, *tables)
        found = await listed(mysql.connection_to(database))
    assert found == TABLES
    assert len(reads) >= 5  # the statements' answers; that of the columns takes several reads


async def test_sql_server_gives_way_while_it_lists_tables(reads: list[GivesWay]) -> None:
    definitions = [(f"a_column_of_the_table_{n}", "int") for n in range(COLUMNS)]
    answer = answering({("dbo", f"t{n}"): definitions for n in range(TABLES)}, {})
    async with tds_server(TdsServer(answer=answer)) as server:
        found = await listed(sql_server(server))
    assert found == TABLES
    # a packet of 4 KiB has some 60 of the rows
    assert len(reads) >= TABLES * COLUMNS // 80
