"""One row with one cell of so many bytes, and what must come of it."""

import secrets
import sqlite3
from base64 import b64encode
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import psycopg
import pymongo

from tests.e2e.cluster import Api
from tests.faults.own_sources import Kind, OwnSource
from tests.integration.datasources import mariadb

FIELD: Final = "cell"
_BEGINNING: Final = 'ü€"\\\n'


class Content(StrEnum):
    TEXT = "text"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class LargeCell:
    """``table`` has one row, with this as its only cell (and an id in MongoDB)."""

    source: OwnSource
    table: str
    content: Content
    value: str | bytes = field(repr=False)

    @property
    def expected(self) -> str:
        """What stands for it in a result."""
        if isinstance(self.value, str):
            return self.value
        is_hex = self.source.kind is Kind.MONGODB
        return self.value.hex() if is_hex else b64encode(self.value).decode()

    def post_job(self, api: Api) -> str:
        posted = api.post_job({self.source.name: {self.table: [FIELD]}}, table=self.table)
        assert posted.status == 202, posted.body
        return str(posted.body["jobId"])


def fill(source: OwnSource, table: str, content: Content, size: int) -> LargeCell:
    """A cell of just so many bytes as it is stored."""
    cell = LargeCell(source, table, content, _drawn(content, size))
    match source.kind:
        case Kind.POSTGRESQL:
            _store_in_postgresql(cell)
        case Kind.MARIADB:
            _store_in_mariadb(cell)
        case Kind.MONGODB:
            _store_in_mongodb(cell)
        case Kind.SQLITE:
            _store_in_sqlite(cell)
    return cell


def _drawn(content: Content, size: int) -> str | bytes:
    if content is Content.BYTES:
        return secrets.token_bytes(size)
    left = size - len(_BEGINNING.encode())
    return _BEGINNING + secrets.token_hex(left)[:left]


def _store_in_postgresql(cell: LargeCell) -> None:
    column = "text" if cell.content is Content.TEXT else "bytea"
    with psycopg.connect(cell.source.sql.conninfo, autocommit=True) as session:
        session.execute(f"CREATE TABLE {cell.table} ({FIELD} {column})")
        session.execute(f"INSERT INTO {cell.table} VALUES (%b)", [cell.value])


def _store_in_mariadb(cell: LargeCell) -> None:
    column = "LONGTEXT" if cell.content is Content.TEXT else "LONGBLOB"
    with mariadb.admin_of(cell.source.sql) as session, session.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {cell.table} ({FIELD} {column})")
        cursor.execute(f"INSERT INTO {cell.table} VALUES (%s)", [cell.value])


def _store_in_mongodb(cell: LargeCell) -> None:
    at = cell.source.sql
    with pymongo.MongoClient[dict[str, Any]](
        at.host, at.port, username=at.user, password=at.password
    ) as client:
        client[at.database][cell.table].insert_one({"_id": 1, FIELD: cell.value})


def _store_in_sqlite(cell: LargeCell) -> None:
    column = "TEXT" if cell.content is Content.TEXT else "BLOB"
    with closing(sqlite3.connect(cell.source.file)) as database, database:
        database.execute(f"CREATE TABLE {cell.table} ({FIELD} {column})")
        database.execute(f"INSERT INTO {cell.table} VALUES (?)", [cell.value])
