"""The databases whose rows are measured: where each lies, and what is asked of it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks import mongodb_replay, mysql_tables, postgresql_tables
from benchmarks.sizes import LARGE_TABLE, TABLE
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id

Columns = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSource:
    """``wide`` is the connection to 5 000 tables, where there are such."""

    connection: Connection
    columns: Columns
    wide: Connection | None = None

    @property
    def tables(self) -> Mapping[str, Columns]:
        """What may be asked for."""
        identity = "_id" if self.connection.type is SourceType.MONGODB else "id"
        return {TABLE: self.columns, LARGE_TABLE: (identity, "body")}


def bench_source(name: str) -> BenchSource:
    """Raise KeyError."""
    return {"postgresql": _postgresql, "mysql": _mysql, "mongodb": _mongodb}[name]()


def _postgresql() -> BenchSource:
    def to(schema: str | None) -> Connection:
        address = postgresql_tables.server()
        return _connection(
            SourceType.POSTGRESQL,
            host=address["host"],
            port=int(address["port"]),
            database=postgresql_tables.DATABASE,
            user=address["user"],
            password=address.get("password", ""),
            schema=schema,
        )

    return BenchSource(connection=to(None), columns=postgresql_tables.COLUMNS, wide=to("wide"))


def _mysql() -> BenchSource:
    def to(database: str) -> Connection:
        address = mysql_tables.server()
        return _connection(
            SourceType.MYSQL,
            host=address["host"],
            port=address["port"],
            database=database,
            user=address["user"],
            password=address["password"],
        )

    return BenchSource(
        connection=to(mysql_tables.DATABASE),
        columns=mysql_tables.COLUMNS,
        wide=to(mysql_tables.WIDE_DATABASE),
    )


def _mongodb() -> BenchSource:
    """The server that replays recorded batches."""
    connection = _connection(
        SourceType.MONGODB,
        host="127.0.0.1",
        port=int(os.environ[mongodb_replay.PORT_VARIABLE]),
        database=mongodb_replay.DATABASE,
        user="",
        password="",
    )
    return BenchSource(connection=connection, columns=mongodb_replay.COLUMNS)


def _connection(
    of: SourceType,
    *,
    host: str,
    port: int,
    database: str,
    user: str,
    password: str,
    schema: str | None = None,
) -> Connection:
    now = datetime.now(UTC)
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=of,
        host=host,
        port=port,
        database_name=database,
        username=user,
        password_encrypted=password,
        encryption_key_version="1",
        created_at=now,
        updated_at=now,
        schema=schema,
    )
