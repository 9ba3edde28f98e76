"""Rows of known sizes, up to so many megabytes of result."""

import secrets
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import pymongo

from tests.e2e.cluster import Api
from tests.faults.own_sources import Kind, OwnSource
from tests.integration.datasources import mariadb

TABLE: Final = "sized"
FIRST: Final = 1_000_000_000
"""Numbers of rows are larger, and of one width."""
ROW_BYTES: Final = 1000
DOCUMENT_BYTES: Final = 16_000
"""A batch of MongoDB's ends at 16 MiB: of these it is so large."""
_INSERTED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class SizedRows:
    """A source that :func:`fill` has filled."""

    source: OwnSource

    @property
    def row_bytes(self) -> int:
        return DOCUMENT_BYTES if self.source.kind is Kind.MONGODB else ROW_BYTES

    @property
    def id_field(self) -> str:
        return "_id" if self.source.kind is Kind.MONGODB else "id"

    @property
    def note_bytes(self) -> int:
        """What is left of a row of JSON, a comma with it."""
        return self.row_bytes - len(f'{{"{self.id_field}":{FIRST},"note":""}},')

    def count(self, megabytes: int) -> int:
        return megabytes * 1_000_000 // self.row_bytes

    def post_job(self, api: Api, megabytes: int) -> str:
        """The id of a new job whose result is so many megabytes and the few bytes around them."""
        asked = {self.source.name: {TABLE: [self.id_field, "note"]}}
        last = FIRST + self.count(megabytes)
        filters = {self.source.name: {TABLE: {self.id_field: {"lte": [last]}}}}
        # one that was asked for lately would not run again
        posted = api.post_job(asked, filters, ask=secrets.token_hex(8))
        assert posted.status == 202, posted.body
        return str(posted.body["jobId"])


def fill(source: OwnSource, megabytes: int) -> SizedRows:
    """PostgreSQL and MariaDB make the rows as they are read; the others store them."""
    rows = SizedRows(source)
    match source.kind:
        case Kind.POSTGRESQL:
            _fill_postgresql(rows, megabytes)
        case Kind.MARIADB:
            _fill_mariadb(rows, megabytes)
        case Kind.MONGODB:
            _fill_mongodb(rows, megabytes)
        case Kind.SQLITE:
            _fill_sqlite(rows, megabytes)
    return rows


def _fill_postgresql(rows: SizedRows, megabytes: int) -> None:
    with psycopg.connect(rows.source.sql.conninfo, autocommit=True) as session:
        session.execute(
            f"CREATE VIEW {TABLE} AS SELECT {FIRST} + n AS id,"
            f" rpad(md5(n::text), {rows.note_bytes}, 'x') AS note"
            f" FROM generate_series(1, {rows.count(megabytes)}) AS n"
        )


def _fill_mariadb(rows: SizedRows, megabytes: int) -> None:
    mariadb.run_sql(
        rows.source.sql,
        f"CREATE VIEW {TABLE} AS SELECT CAST({FIRST} + seq AS SIGNED) AS id,"
        f" RPAD(MD5(seq), {rows.note_bytes}, 'x') AS note FROM seq_1_to_{rows.count(megabytes)}",
    )


def _fill_mongodb(rows: SizedRows, megabytes: int) -> None:
    at = rows.source.sql
    note = "x" * rows.note_bytes
    numbers = range(FIRST + 1, FIRST + 1 + rows.count(megabytes))
    with pymongo.MongoClient[dict[str, Any]](
        at.host, at.port, username=at.user, password=at.password
    ) as client:
        for start in range(0, len(numbers), _INSERTED_AT_ONCE):
            several = numbers[start : start + _INSERTED_AT_ONCE]
            client[at.database][TABLE].insert_many(
                [{"_id": each, "note": note} for each in several]
            )


def _fill_sqlite(rows: SizedRows, megabytes: int) -> None:
    with closing(sqlite3.connect(rows.source.file)) as database, database:
        database.execute(f"CREATE TABLE {TABLE} (id INTEGER PRIMARY KEY, note TEXT NOT NULL)")
        database.execute(
            "WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers"
            f" WHERE n < {rows.count(megabytes)}) INSERT INTO {TABLE}"
            f" SELECT {FIRST} + n, printf('%0{rows.note_bytes}d', n) FROM numbers"
        )
