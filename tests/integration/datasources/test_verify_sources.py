"""`make verify-sources` against the servers that run here, at a small size."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from fetcher.domain.connections import SourceType
from tests.integration.datasources.mariadb import own_database, rows_in
from tests.servers.addresses import SqlAddress
from tests.verify.address import Address, parsed
from tests.verify.report import Outcome
from tests.verify.run import Scale, verify

pytestmark = pytest.mark.integration

# what two sockets of this machine hold must not be the whole big table
SMALL = Scale(doublings=14, option_sets=("json",), every_type=25, every_filter=17)
CHECKS = 8


def address_of(kind: SourceType, address: SqlAddress) -> Address:
    return Address(
        type=kind,
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        database=address.database,
    )


@pytest.fixture
def mariadb_database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def judged(address: Address) -> list[Outcome]:
    report = await verify(address, SMALL)
    assert report.is_good, report.text()
    assert address.password == "" or address.password not in report.text()
    return [line.outcome for line in report.lines]


async def test_postgresql(postgres_database: Callable[[], SqlAddress]) -> None:
    address = postgres_database()
    outcomes = await judged(address_of(SourceType.POSTGRESQL, address))
    assert outcomes == [Outcome.PASSED] * (CHECKS + 1)
    with psycopg.connect(address.conninfo) as connection:
        left = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fv_%'")
        assert left.fetchall() == []


async def test_mariadb(mariadb_database: SqlAddress) -> None:
    outcomes = await judged(address_of(SourceType.MYSQL, mariadb_database))
    assert outcomes == [Outcome.PASSED] * (CHECKS + 1)
    assert list(rows_in(mariadb_database, "SHOW TABLES")) == []


async def test_mongodb(mongo_uri: str, mongo_database: Callable[[], str]) -> None:
    address = parsed(f"{mongo_uri.rstrip('/')}/{mongo_database()}", password="")
    outcomes = await judged(address)
    assert outcomes.count(Outcome.SKIPPED) == 1
    assert outcomes.count(Outcome.PASSED) == CHECKS


async def test_a_server_that_is_not_there_is_told_by_stage() -> None:
    address = parsed("mssql://u@127.0.0.1:1/db", password="canary")
    report = await verify(address, SMALL)
    assert not report.is_good
    (line,) = report.lines
    assert (line.outcome, line.detail) == (Outcome.FAILED, "stage tcp, reason refused")
    assert "canary" not in report.text()
