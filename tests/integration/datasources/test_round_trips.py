"""What was written into a database is what its consumer reads: drawn values through whole jobs.

One process, PostgreSQL, MariaDB, MongoDB and SQLite at once: each example is written by the
drivers, read by one job, sealed, and opened as a consumer does. What is expected comes from what
was written, by no code of ours. :mod:`test_rendered_alike` does so with more types, but no job.
"""

import base64
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pymongo
import pytest
from bson import Binary, DatetimeMS, Decimal128, Int64, ObjectId
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scripts.types_document.golden import Number, exact_json
from tests.e2e.cluster import Api, embedded, opened_document, postgres_connection
from tests.integration.datasources import drawn_values as drawn
from tests.integration.datasources import mariadb as maria
from tests.integration.datasources.mongo_server import make_users, running_server
from tests.scale import scaled
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.e2e

EXAMPLES = scaled(4)
Row = Mapping[str, Any]


def _number(read: object, wrote: int) -> bool:
    return read == Number(str(wrote))


def _exact(read: object, wrote: Decimal) -> bool:
    """Its digits and its scale."""
    return isinstance(read, str) and Decimal(read).as_tuple() == wrote.as_tuple()


def _of_30_places(read: object, wrote: Decimal) -> bool:
    return isinstance(read, str) and read.partition(".")[2].isdigit() and Decimal(read) == wrote


def _double(read: object, wrote: float) -> bool:
    """The same double, its sign included; what JSON has no number for is a text."""
    if not isfinite(wrote):
        return isinstance(read, str) and repr(float(read)) == repr(wrote)
    return isinstance(read, Number) and repr(float(read.text)) == repr(wrote)


def _unsigned_zero(read: object, wrote: float) -> bool:
    """As MariaDB and SQLite keep it: of -0.0 they do not keep the sign everywhere."""
    return _double(read, wrote) or (wrote == 0 and _double(read, -wrote))


def _text(read: object, wrote: str) -> bool:
    return read == wrote


def _moment(read: object, wrote: datetime) -> bool:
    """The same instant, in UTC and told so."""
    if not isinstance(read, str) or not read.endswith("Z"):
        return False
    utc = wrote.replace(tzinfo=UTC) if wrote.tzinfo is None else wrote
    return datetime.fromisoformat(read) == utc


def _day(read: object, wrote: date) -> bool:
    return read == f"{wrote.isoformat()}T00:00:00Z"


def _bytes(read: object, wrote: bytes) -> bool:
    return read == base64.b64encode(wrote).decode()


def _hex_or_uuid(read: object, wrote: bytes) -> bool:
    return read == (str(UUID(bytes=wrote)) if len(wrote) == 16 else wrote.hex())


def _decimal128(read: object, wrote: Decimal128) -> bool:
    return _exact(read, wrote.to_decimal())


def _object_id(read: object, wrote: ObjectId) -> bool:
    return read == wrote.binary.hex()


def _milliseconds(read: object, wrote: DatetimeMS) -> bool:
    return _moment(read, datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(wrote)))


def _of_no_calendar() -> st.SearchStrategy[str]:
    """PostgreSQL's own text for timestamps that Python has no value for."""
    before_christ = st.builds(
        "{:04}-{:02}-{:02} {:%H:%M:%S} BC".format,
        st.integers(1, 4713),
        st.integers(1, 12),
        st.integers(1, 28),
        st.times(),
    )
    return st.sampled_from(["infinity", "-infinity"]) | before_christ


_SOME_OF_16 = drawn.BYTES | st.binary(min_size=16, max_size=16)
_OF_A_YEAR = st.integers(-62_135_596_800_000, 253_402_300_799_999).map(DatetimeMS)
"""From the years 1 to 9999: the test server takes no others (the golden matrix has those)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Of a column: as it is declared, what is drawn, whether what was read is what was written."""

    declared: str
    drawn: st.SearchStrategy[Any]
    is_same: Callable[[Any, Any], bool]


COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "postgresql": {
        "i": Kind("bigint", drawn.INT64, _number),
        "n": Kind("numeric", drawn.decimals(digits=60, scale=30), _exact),
        "f": Kind("float8", drawn.DOUBLES, _double),
        "s": Kind("text", drawn.texts(with_nul=False), _text),
        "d": Kind("date", drawn.DATES, _day),
        "w": Kind("timestamp", drawn.WALLS, _moment),
        "z": Kind("timestamptz", drawn.instants(), _moment),
        "x": Kind("timestamp", _of_no_calendar(), _text),
        "b": Kind("bytea", drawn.BYTES, _bytes),
    },
    "mariadb": {
        "i": Kind("bigint unsigned", drawn.UINT64, _number),
        "n": Kind("decimal(65,30)", drawn.decimals(digits=65, scale=30), _of_30_places),
        "f": Kind("double", drawn.FINITE, _unsigned_zero),
        "s": Kind("longtext", drawn.texts(with_nul=True), _text),
        "d": Kind("date", drawn.DATES, _day),
        "w": Kind("datetime(6)", drawn.WALLS, _moment),
        "b": Kind("varbinary(200)", drawn.BYTES, _bytes),
    },
    "mongodb": {
        "i": Kind("", drawn.INT64.map(Int64), _number),
        "n": Kind("", drawn.decimals(digits=34, scale=30).map(Decimal128), _decimal128),
        "f": Kind("", drawn.DOUBLES, _double),
        "s": Kind("", drawn.texts(with_nul=True), _text),
        "w": Kind("", _OF_A_YEAR, _milliseconds),
        "b": Kind("", _SOME_OF_16.map(Binary), _hex_or_uuid),
        "o": Kind("", st.binary(min_size=12, max_size=12).map(ObjectId), _object_id),
    },
    "sqlite": {
        "i": Kind("", drawn.INT64, _number),
        "f": Kind("", st.floats(allow_nan=False), _unsigned_zero),
        "s": Kind("", drawn.texts(with_nul=True), _text),
        "b": Kind("", drawn.BYTES, _bytes),
    },
}


SOURCES: Mapping[str, str] = {
    "postgresql": "postgresql_db",
    "mariadb": "mariadb_db",
    "mongodb": "mongodb_db",
    "sqlite": "sqlite_db",
}


def _rows(columns: Mapping[str, Kind]) -> st.SearchStrategy[list[Row]]:
    row = st.fixed_dictionaries({name: st.none() | kind.drawn for name, kind in columns.items()})
    return st.lists(row, min_size=1, max_size=30)


EXAMPLE = st.fixed_dictionaries({name: _rows(columns) for name, columns in COLUMNS.items()})


class Databases:
    """A table ``t`` in each of them, and a process that is connected to them."""

    def __init__(self, folder: Path, api: Api, write: Mapping[str, Callable[..., None]]) -> None:
        self._folder, self._api, self._write = folder, api, write

    def written_and_read(self, example: Mapping[str, Sequence[Row]]) -> Mapping[str, list[Row]]:
        """By one job over all, from its opened result, in the order of the writing."""
        for name, rows in example.items():
            columns = list(COLUMNS[name])
            self._write[name]([(at, *(row[c] for c in columns)) for at, row in enumerate(rows)])
        fields = {SOURCES[name]: {"t": ["id", *COLUMNS[name]]} for name in example}
        posted = self._api.post_job(fields, round=time.monotonic_ns())
        assert posted.status == 202, posted.body
        job = self._api.wait_for_job(posted.body["jobId"])
        assert job["status"] == "completed", job
        document = exact_json(opened_document(self._folder, job["id"]))
        found = {}
        for name in example:
            rows = document[SOURCES[name]]["t"]
            rows.sort(key=lambda row: int(row["id"].text))
            found[name] = rows
        return found


@pytest.fixture
def databases(
    tmp_path: Path,
    postgres_database: Callable[[], SqlAddress],
    mariadb: SqlAddress,
) -> Iterator[Databases]:
    postgres = postgres_database()
    with (
        psycopg.connect(postgres.conninfo, autocommit=True) as connection,
        maria.own_database(mariadb) as maria_address,
        maria.admin_of(maria_address) as maria_admin,
        _reader_of(maria_address, maria_admin.cursor()) as reader,
        _own_mongodb(tmp_path / "mongodb") as (mongo, collection),
        embedded(tmp_path) as (_, api),
    ):
        sources = tmp_path / "fetcher-data" / "sources"
        sources.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = sources / "t.db"

        def sql(cursor: Any, name: str) -> Callable[[Any], None]:
            cursor.execute(f"CREATE TABLE t (id int, {_declared(name)})")
            marks = ", ".join(["%s"] * (len(COLUMNS[name]) + 1))

            def write(rows: Any) -> None:
                cursor.execute("TRUNCATE t")
                cursor.executemany(f"INSERT INTO t VALUES ({marks})", rows)

            return write

        def write_sqlite(rows: Any) -> None:
            with closing(sqlite3.connect(file)) as database, database:
                database.execute("DELETE FROM t")
                database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)

        def write_mongodb(rows: Any) -> None:
            names = ("id", *COLUMNS["mongodb"])
            collection.delete_many({})
            collection.insert_many([dict(zip(names, row, strict=True)) for row in rows])

        with closing(sqlite3.connect(file)) as database, database:
            database.execute("CREATE TABLE t (id, i, f, s, b)")
        writers = {
            "postgresql": sql(connection.cursor(), "postgresql"),
            "mariadb": sql(maria_admin.cursor(), "mariadb"),
            "mongodb": write_mongodb,
            "sqlite": write_sqlite,
        }
        for body in (
            postgres_connection(postgres, configName="postgresql_db"),
            postgres_connection(reader, configName="mariadb_db", type="MYSQL"),
            postgres_connection(mongo, configName="mongodb_db", type="MONGODB"),
            {"configName": "sqlite_db", "type": "SQLITE", "databaseName": "t.db"},
        ):
            made = api.connect(body)
            assert made.status == 201, made.body
        yield Databases(tmp_path, api, writers)


@settings(
    max_examples=EXAMPLES,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(example=EXAMPLE)
def test_what_was_written_is_what_the_consumer_of_a_job_reads(
    example: Mapping[str, Sequence[Row]], databases: Databases
) -> None:
    found = databases.written_and_read(example)
    wrong = [
        (name, column, wrote[column], read[column])
        for name, rows in example.items()
        for wrote, read in zip(rows, found[name], strict=True)
        for column, kind in COLUMNS[name].items()
        if not (
            read[column] is None
            if wrote[column] is None
            else kind.is_same(read[column], wrote[column])
        )
    ]
    assert wrong == []


@contextmanager
def _own_mongodb(folder: Path) -> Iterator[tuple[SqlAddress, Any]]:
    """A server that knows users, and one's own collection there."""
    with running_server(folder, is_kept=True) as port:
        make_users(port, [("reader", "a-password", "admin")])
    with (
        running_server(folder, auth=True) as port,
        pymongo.MongoClient[dict[str, Any]](
            "127.0.0.1",
            port,
            username="reader",
            password="a-password",
            serverSelectionTimeoutMS=10_000,
            serverMonitoringMode="poll",
        ) as client,
    ):
        address = SqlAddress(
            host="127.0.0.1", port=port, user="reader", password="a-password", database="drawn"
        )
        yield address, client["drawn"]["t"]


@contextmanager
def _reader_of(address: SqlAddress, admin: Any) -> Iterator[SqlAddress]:
    """A user with a password, as connections have one."""
    name, places = f"reader_{secrets.token_hex(4)}", ("%", "localhost")
    users = [f"'{name}'@'{place}'" for place in places]
    try:
        for user in users:
            admin.execute(f"CREATE USER {user} IDENTIFIED BY 'a-password'")
            admin.execute(f"GRANT SELECT ON {address.database}.* TO {user}")
        yield replace(address, user=name, password="a-password")
    finally:
        admin.execute(f"DROP USER IF EXISTS {', '.join(users)}")


def _declared(name: str) -> str:
    return ", ".join(f"{column} {kind.declared}" for column, kind in COLUMNS[name].items())
