"""What a server renders is what the Engine would write of the driver's own Python values.

Values of each type are drawn, written by parameters, and read in both ways.
"""

import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import bson
import psycopg
import pymongo
import pytest
from bson import Decimal128, Int64, ObjectId, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_value
from scripts.types_document.golden import Number, exact_json
from tests.integration.datasources import drawn_values as drawn
from tests.integration.datasources import mariadb as maria
from tests.integration.datasources.harness import a_connection, connection_to, document, engines
from tests.servers.addresses import SqlAddress
from tests.unit.datasources.mongodb.reference import reference

Row = Mapping[str, Any]

# the tables are emptied for each example
EACH_ANEW = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def rows_of(columns: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[list[Row]]:
    nullable = {name: st.one_of(st.none(), values) for name, values in columns.items()}
    return st.lists(st.fixed_dictionaries(nullable), min_size=1, max_size=12)


async def read(
    connection: Connection,
    columns: Sequence[str],
    *,
    options: JobOptions | None = None,
    folder: Path | None = None,
) -> list[dict[str, Any]]:
    """By our connector, in the order of ``id``."""
    async with engines(sqlite_folder=folder) as opened:
        data = await document(opened, connection, {"t": ["id", *columns]}, options=options)
    rows: list[dict[str, Any]] = exact_json(data)["src"]["t"]
    rows.sort(key=lambda row: int(row.pop("id").text))
    return rows


def agree(ours: object, theirs: object, *, is_float: bool) -> bool:
    """Numbers by their digits; of doubles, by the double."""
    if is_float and isinstance(ours, Number) and isinstance(theirs, Number):
        return repr(float(ours.text)) == repr(float(theirs.text))
    return ours == theirs


def disagreements(
    ours: Sequence[Row], texts: Sequence[Mapping[str, str]], floats: set[str]
) -> list[tuple[str, object, str]]:
    """``texts`` are JSON, cell by cell."""
    assert len(ours) == len(texts)
    return [
        (name, row[name], text)
        for row, cells in zip(ours, texts, strict=True)
        for name, text in cells.items()
        if not agree(row[name], exact_json(text), is_float=name in floats)
    ]


POSTGRESQL: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "big": ("bigint", drawn.INT64),
    "exact": ("numeric", drawn.decimals(digits=60, scale=30)),
    "scaled": ("numeric(30,10)", drawn.decimals(digits=30, scale=10)),
    "double_": ("float8", drawn.DOUBLES),
    "single": ("float4", drawn.SINGLES),
    "text_": ("text", drawn.texts(with_nul=False)),
    "bytes_": ("bytea", drawn.BYTES),
    "day": ("date", drawn.DATES),
    "wall": ("timestamp", drawn.WALLS),
    "instant": ("timestamptz", drawn.instants()),
    "uuid_": ("uuid", drawn.UUIDS),
    "flag": ("boolean", st.booleans()),
    "numbers": ("bigint[]", st.lists(st.one_of(st.none(), drawn.INT64), max_size=5)),
    "names": ("text[]", st.lists(drawn.texts(with_nul=False), max_size=4)),
    "exacts": ("numeric[]", st.lists(drawn.decimals(digits=30, scale=10), max_size=4)),
    "days": ("date[]", st.lists(drawn.DATES, max_size=3)),
    "matrix": (
        "bigint[]",
        st.integers(1, 3).flatmap(
            lambda width: st.lists(
                st.lists(drawn.INT64, min_size=width, max_size=width), min_size=1, max_size=3
            )
        ),
    ),
}
ARRAYS = {"numbers", "names", "exacts", "days", "matrix"}


@pytest.fixture
def postgresql_table(postgres_database: Callable[[], SqlAddress]) -> Iterator[Any]:
    address = postgres_database()
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in POSTGRESQL.items())
    with psycopg.connect(
        address.conninfo, autocommit=True, options="-c TimeZone=UTC -c extra_float_digits=3"
    ) as connection:
        connection.execute(f"CREATE TABLE t (id int, {declared}, own text)")
        yield address, connection


@pytest.mark.integration
@EACH_ANEW
@given(rows=rows_of({name: values for name, (_, values) in POSTGRESQL.items()}))
async def test_postgresql(rows: list[Row], postgresql_table: Any) -> None:
    address, connection = postgresql_table
    names = list(POSTGRESQL)
    marks = ", ".join(f"%s::{kind}" for kind, _ in POSTGRESQL.values())
    connection.execute("TRUNCATE t")
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO t VALUES (%s, {marks})",
            [(number, *(row[name] for name in names)) for number, row in enumerate(rows)],
        )
        cursor.execute(f"SELECT {', '.join(names)} FROM t ORDER BY id")
        driver_rows = [dict(zip(names, row, strict=True)) for row in cursor]
        cursor.execute(f"SELECT {', '.join(f'{name}::text' for name in ARRAYS)} FROM t ORDER BY id")
        array_texts = [dict(zip(ARRAYS, row, strict=True)) for row in cursor]
    compatible = await read(connection_to(address), names)
    expected = [
        {name: encode_value(value) for name, value in (row | texts).items()}
        for row, texts in zip(driver_rows, array_texts, strict=True)
    ]
    assert disagreements(compatible, expected, {"double_", "single"}) == []
    natural = await read(connection_to(address), names, options=JobOptions(values="natural"))
    expected = [{name: natural_text(value) for name, value in row.items()} for row in driver_rows]
    assert disagreements(natural, expected, {"double_", "single"}) == []


def natural_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(natural_text, value))}]"
    text = encode_value(value)
    if isinstance(value, datetime):
        return text if value.tzinfo is not None else text.replace('Z"', '"')
    return text.replace('T00:00:00Z"', '"') if hasattr(value, "toordinal") else text


@pytest.mark.integration
@EACH_ANEW
@given(
    days=st.lists(
        st.tuples(st.integers(-4713, 294275).filter(bool), st.integers(1, 12), st.integers(1, 28)),
        min_size=1,
        max_size=20,
    ),
    seconds=st.decimals(0, 59, places=6),
)
async def test_postgresql_dates_of_any_age(
    days: list[tuple[int, int, int]], seconds: object, postgresql_table: Any
) -> None:
    """Python has none of them before 1 or after 9999: there the server's text must stand."""
    address, connection = postgresql_table
    connection.execute("TRUNCATE t")
    for number, (year, month, day) in enumerate(days):
        era = " BC" if year < 0 else ""
        text = f"{abs(year):04}-{month:02}-{day:02} 12:34:{seconds:09.6f}"
        connection.execute(
            "INSERT INTO t (id, day, wall, instant, own) VALUES"
            " (%s, %s::timestamp::date, %s::timestamp, %s::timestamptz, %s)",
            (number, text + era, text + era, f"{text}+00{era}", f"{year}"),
        )
    connection.execute(
        "INSERT INTO t (id, day, wall, instant, own) VALUES (1000, 'infinity', '-infinity',"
        " 'infinity', '0')"
    )
    rows = await read(connection_to(address), ["day", "wall", "instant", "own"])
    texts = connection.execute(
        "SELECT day::text, wall::text, instant::text FROM t ORDER BY id"
    ).fetchall()
    for row, own in zip(rows, texts, strict=True):
        expected = own
        if 1 <= int(row["own"]) <= 9999:
            moments = [each.removesuffix("+00").replace(" ", "T") for each in own[1:]]
            expected = (f"{own[0]}T00:00:00Z", *(f"{each}Z" for each in moments))
        assert (row["day"], row["wall"], row["instant"]) == expected


@pytest.mark.integration
@EACH_ANEW
@given(documents=st.lists(drawn.numbers_in_json(), min_size=1, max_size=10))
async def test_numbers_in_json_columns_stay_as_they_are_written(
    documents: list[str], json_tables: Any
) -> None:
    for connection, insert in json_tables:
        insert(documents)
        rows = await read(connection, ["j"])
        assert [row["j"] for row in rows] == list(map(exact_json, documents))


@pytest.fixture
def json_tables(
    postgres_database: Callable[[], SqlAddress], mariadb: SqlAddress
) -> Iterator[list[tuple[Connection, Callable[[Sequence[str]], None]]]]:
    address = postgres_database()
    with (
        psycopg.connect(address.conninfo, autocommit=True) as postgres,
        maria.own_database(mariadb) as other,
        maria.admin_of(other) as maria_admin,
    ):
        cursors = (postgres.cursor(), maria_admin.cursor())
        for cursor in cursors:
            cursor.execute("CREATE TABLE t (id int, j json)")

        def inserter(cursor: Any) -> Callable[[Sequence[str]], None]:
            def insert(documents: Sequence[str]) -> None:
                cursor.execute("TRUNCATE t")
                cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(documents)))

            return insert

        yield [
            (connection_to(address), inserter(cursors[0])),
            (maria.connection_to(other), inserter(cursors[1])),
        ]


MARIADB: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "big": ("bigint", drawn.INT64),
    "unsigned_": ("bigint unsigned", drawn.UINT64),
    "exact": ("decimal(65,30)", drawn.decimals(digits=65, scale=30)),
    "double_": ("double", drawn.FINITE),
    "single": ("float", drawn.FINITE_SINGLES),
    "text_": ("longtext", drawn.texts(with_nul=True)),
    "bytes_": ("varbinary(200)", drawn.BYTES),
    "day": ("date", drawn.DATES),
    "wall": ("datetime(6)", drawn.WALLS),
    "bits": ("bit(64)", drawn.UINT64),
}


@pytest.fixture
def mariadb_table(mariadb: SqlAddress) -> Iterator[Any]:
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in MARIADB.items())
    with maria.own_database(mariadb) as address, maria.admin_of(address) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE t (id int, {declared}) CHARACTER SET utf8mb4")
        yield address, cursor


@pytest.mark.integration
@EACH_ANEW
@given(rows=rows_of({name: values for name, (_, values) in MARIADB.items()}))
async def test_mariadb(rows: list[Row], mariadb_table: Any) -> None:
    address, cursor = mariadb_table
    names = list(MARIADB)
    cursor.execute("TRUNCATE t")
    cursor.executemany(
        f"INSERT INTO t VALUES (%s{', %s' * len(names)})",
        [(number, *(row[name] for name in names)) for number, row in enumerate(rows)],
    )
    # added to a double, a float shows all of its bits
    columns = [{"single": "single + 0e0", "bits": "bits + 0"}.get(name, name) for name in names]
    cursor.execute(f"SELECT {', '.join(columns)} FROM t ORDER BY id")
    driver_rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    ours = await read(maria.connection_to(address), names)
    expected = [{name: encode_value(value) for name, value in row.items()} for row in driver_rows]
    for row, cells in zip(ours, expected, strict=True):
        # the fewest digits of 32 bits are not those of 64: the number must be the same in 32
        if isinstance(row["single"], Number):
            assert as_single(row["single"].text) == as_single(cells["single"])
            del cells["single"]
    assert disagreements(ours, expected, {"double_"}) == []


def as_single(text: str) -> bytes:
    return struct.pack("<f", float(text))


SQLITE = {
    "whole": drawn.INT64,
    "double_": st.floats(allow_nan=False),
    "text_": drawn.texts(with_nul=True),
    "bytes_": drawn.BYTES,
}


@EACH_ANEW
@given(rows=rows_of(SQLITE))
async def test_sqlite(rows: list[Row], tmp_path: Path) -> None:
    names = list(SQLITE)
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute(f"CREATE TABLE IF NOT EXISTS t (id INT, {', '.join(names)})")
        database.execute("DELETE FROM t")
        database.executemany(
            f"INSERT INTO t VALUES (?{', ?' * len(names)})",
            [(number, *(row[name] for name in names)) for number, row in enumerate(rows)],
        )
        database.commit()
        read_back = database.execute(f"SELECT {', '.join(names)} FROM t ORDER BY id").fetchall()
    connection = a_connection(source_type=SourceType.SQLITE, database="a.db")
    ours = await read(connection, names, folder=tmp_path)
    expected = [dict(zip(names, map(encode_value, row), strict=True)) for row in read_back]
    assert disagreements(ours, expected, set()) == []


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    drawn.INT32,
    drawn.INT64.map(Int64),
    drawn.DOUBLES,
    drawn.texts(with_nul=True),
    drawn.BYTES,
    drawn.decimals(digits=34, scale=30).map(Decimal128),
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.datetimes().map(lambda wall: wall.replace(microsecond=wall.microsecond // 1000 * 1000)),
    st.builds(Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
_KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0.$"), min_size=1, max_size=8)
MONGODB = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=8,
)


@pytest.mark.integration
@EACH_ANEW
@given(values=st.lists(MONGODB, min_size=1, max_size=12))
async def test_mongodb(values: list[object], mongo_collection: Any) -> None:
    """The driver's values, written by the rules of the table (spec datasources 10.6)."""
    connection, collection = mongo_collection
    collection.delete_many({})
    collection.insert_many([{"_id": number, "v": value} for number, value in enumerate(values)])
    raw = [bytes(found.raw) for found in collection.find({})]
    expected = {}
    for data in raw:
        found = bson.decode(data, _EXACT_DATES)
        expected[found["_id"]] = exact_json(reference({"v": found["v"]}))["v"]
    async with engines() as opened:
        written = await document(opened, connection, {"t": ["v"]})
    rows = {int(row["_id"].text): row["v"] for row in exact_json(written)["src"]["t"]}
    assert rows == expected


_EXACT_DATES: "CodecOptions[dict[str, Any]]" = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS
)


@pytest.fixture
def mongo_collection(mongo_uri: str, mongo_database: Callable[[], str]) -> Iterator[Any]:
    name = mongo_database()
    with pymongo.MongoClient[RawBSONDocument](
        mongo_uri,
        serverSelectionTimeoutMS=10_000,
        serverMonitoringMode="poll",
        document_class=RawBSONDocument,
    ) as client:
        host, port = client.address or ("", 0)
        connection = a_connection(
            source_type=SourceType.MONGODB, host=host, port=port, database=name
        )
        yield connection, client[name]["t"]
