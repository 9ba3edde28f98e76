"""The values of the cases from the field (cases 1, 2, 3, 5, 6), exactly as they are written there.

``parsed`` is strict: a document with NaN or Infinity in it is none.
"""

from collections.abc import Callable, Iterator, Sequence

import pymongo
import pytest
from bson import Decimal128, Int64

from fetcher.domain.connections import Connection, SourceType
from tests.integration.datasources import harness
from tests.integration.datasources import mariadb as on_server
from tests.integration.datasources.harness import a_connection, engines, rows_of
from tests.integration.datasources.mariadb import own_database
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration

DECIMALS = ("10.00", "0.1", "12345678901234567890.123456789", "-0.000")
LARGEST = 18446744073709551615


@pytest.fixture
def on_postgresql(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    return postgres_database()


@pytest.fixture
def on_mariadb(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def postgresql_row(address: SqlAddress, values: str) -> Sequence[object]:
    harness.run_sql(address, f"CREATE TABLE t AS SELECT {values}")
    async with engines() as opened:
        (row,) = await rows_of(opened, harness.connection_to(address), "t", ["*"])
    return [row[name] for name in sorted(row)]


async def mariadb_row(address: SqlAddress, columns: str, values: str) -> Sequence[object]:
    on_server.run_sql(
        address,
        f"CREATE TABLE t ({columns})",
        f"SET STATEMENT sql_mode = '' FOR INSERT INTO t VALUES ({values})",
    )
    async with engines() as opened:
        (row,) = await rows_of(opened, on_server.connection_to(address), "t", ["*"])
    return [row[name] for name in sorted(row)]


async def mongodb_row(uri: str, name: str, values: Sequence[object]) -> Sequence[object]:
    with pymongo.MongoClient[dict[str, object]](uri, serverSelectionTimeoutMS=10_000) as client:
        client[name]["t"].insert_one({f"c{n}": value for n, value in enumerate(values)})
        host, port = client.address or ("", 0)
    connection: Connection = a_connection(
        source_type=SourceType.MONGODB, host=host, port=port, database=name
    )
    async with engines() as opened:
        (row,) = await rows_of(opened, connection, "t", ["*"])
    return [row[f"c{n}"] for n in range(len(values))]


async def test_case_1_what_is_no_number_is_a_text(on_postgresql: SqlAddress) -> None:
    values = "'NaN'::numeric a, 'Infinity'::float8 b, '-Infinity'::numeric c"
    assert await postgresql_row(on_postgresql, values) == ["NaN", "Infinity", "-Infinity"]


async def test_case_2_decimals_keep_every_digit_and_their_scale(
    on_postgresql: SqlAddress,
    on_mariadb: SqlAddress,
    mongo_uri: str,
    mongo_database: Callable[[], str],
) -> None:
    """Only Decimal128 has a negative zero: the others store ``0.000``."""
    stored = [*DECIMALS[:3], "0.000"]
    columns = ", ".join(f"'{value}'::numeric c{n}" for n, value in enumerate(DECIMALS))
    assert await postgresql_row(on_postgresql, columns) == stored
    columns = "c0 decimal(4,2), c1 decimal(2,1), c2 decimal(29,9), c3 decimal(4,3)"
    assert await mariadb_row(on_mariadb, columns, ", ".join(DECIMALS)) == stored
    decimals = [Decimal128(value) for value in DECIMALS]
    assert await mongodb_row(mongo_uri, mongo_database(), decimals) == list(DECIMALS)


async def test_case_3_integers_keep_their_digits(
    on_postgresql: SqlAddress,
    on_mariadb: SqlAddress,
    mongo_uri: str,
    mongo_database: Callable[[], str],
) -> None:
    signed = [9007199254740993, -9223372036854775808]
    columns = ", ".join(f"'{value}'::bigint c{n}" for n, value in enumerate(signed))
    assert await postgresql_row(on_postgresql, columns) == signed
    columns = "c0 bigint, c1 bigint, c2 bigint unsigned"
    values = ", ".join(map(str, (*signed, LARGEST)))
    assert await mariadb_row(on_mariadb, columns, values) == [*signed, LARGEST]
    assert await mongodb_row(mongo_uri, mongo_database(), [*map(Int64, signed)]) == signed


async def test_case_5_dates_of_zeros_are_the_databases_text(on_mariadb: SqlAddress) -> None:
    row = await mariadb_row(on_mariadb, "d date, t datetime", "'0000-00-00', '0000-00-00 00:00:00'")
    assert row == ["0000-00-00", "0000-00-00 00:00:00"]


async def test_case_6_moments_that_no_calendar_holds_are_texts(on_postgresql: SqlAddress) -> None:
    values = (
        "'infinity'::timestamptz a, '0044-03-15 BC'::date b,"
        " '2031-04-05 06:07:08.123456+05:45'::timestamptz c"
    )
    assert await postgresql_row(on_postgresql, values) == [
        "infinity",
        "0044-03-15 BC",
        "2031-04-05T00:22:08.123456Z",
    ]
