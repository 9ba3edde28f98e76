"""What makes and drops the tables of a run, through the connectors' own sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import oracledb
import psycopg
import pymongo
import trio

from fetcher.datasources.mysql.session import Session as MysqlSession
from fetcher.datasources.oracle.session import Session as OracleSession
from fetcher.datasources.postgresql.connect import connect as connect_to_postgresql
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.session import Session as SqlServerSession
from fetcher.datasources.targets import Target
from fetcher.domain.connections import SourceType
from fetcher_engine import SourceFailure, Stage
from tests.verify.address import Address

_STATEMENT_SECONDS: Final = 120.0
_LOCK_SECONDS: Final = 30.0
_POSTGRESQL_SETTINGS: Final = (
    "SET TimeZone TO 'UTC'",
    "SET DateStyle TO 'ISO, MDY'",
    "SET IntervalStyle TO 'postgres'",
    "SET standard_conforming_strings TO on",
    f"SET statement_timeout TO '{_STATEMENT_SECONDS:g}s'",
    f"SET lock_timeout TO '{_LOCK_SECONDS:g}s'",
)


class StatementRefused(Exception):
    """The server did not take a statement; nothing of its words is kept."""


class Owner(Protocol):
    """One session that may write."""

    async def run(self, *statements: str) -> None:
        """Carry them out, each for good; raise StatementRefused."""

    async def values(self, statement: str) -> set[str]:
        """The first column; raise StatementRefused."""

    async def close(self) -> None: ...


class _Postgresql:
    """A session of the connector's own only reads: this one is logged in like it, no more."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, target: Target) -> "_Postgresql":
        owner = cls(await connect_to_postgresql(target))
        owner._connection.autocommit = True
        await owner.run(*_POSTGRESQL_SETTINGS)
        return owner

    async def run(self, *statements: str) -> None:
        for each in statements:
            await self._executed(each)

    async def values(self, statement: str) -> set[str]:
        return {str(row[0]) for row in (await self._executed(statement)).fetchall()}

    async def close(self) -> None:
        self._connection.close()

    async def _executed(self, statement: str) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return await trio.to_thread.run_sync(
                self._connection.execute, statement.encode(), abandon_on_cancel=True
            )
        except psycopg.Error:
            refused = True
        if refused:
            raise StatementRefused
        raise AssertionError


class _Mysql:
    def __init__(self, session: MysqlSession) -> None:
        self._session = session

    async def run(self, *statements: str) -> None:
        for each in statements:
            await _judged(self._session.execute, each, Stage.QUERY)

    async def values(self, statement: str) -> set[str]:
        return {str(row[0]) for row in await _judged(self._session.execute, statement, Stage.QUERY)}

    async def close(self) -> None:
        await self._session.close()


class _SqlServer:
    def __init__(self, session: SqlServerSession) -> None:
        self._session = session

    async def run(self, *statements: str) -> None:
        for each in statements:
            await _judged(self._session.rows, Statement(each), Stage.QUERY)

    async def values(self, statement: str) -> set[str]:
        rows = await _judged(self._session.rows, Statement(statement), Stage.QUERY)
        return {str(row[0]) for row in rows}

    async def close(self) -> None:
        await self._session.close()


class _Oracle:
    def __init__(self, session: OracleSession) -> None:
        self._session = session

    async def run(self, *statements: str) -> None:
        for each in statements:

            def work(connection: oracledb.Connection, statement: str = each) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
                connection.commit()

            await _judged(self._session.run, work, Stage.QUERY)

    async def values(self, statement: str) -> set[str]:
        rows = await _judged(self._session.rows, statement, [], Stage.QUERY)
        return {str(row[0]) for row in rows}

    async def close(self) -> None:
        await self._session.close()


async def _judged(call: Any, *arguments: object) -> Any:
    refused = False
    try:
        return await call(*arguments)
    except SourceFailure:
        refused = True
    if refused:
        raise StatementRefused
    raise AssertionError


async def open_owner(address: Address) -> Owner:
    """Raise SourceFailure. MongoDB has none: :class:`Collections` fills its collections."""
    target = address.target()
    limits = {"statement_seconds": _STATEMENT_SECONDS, "lock_seconds": _LOCK_SECONDS}
    match address.type:
        case SourceType.POSTGRESQL:
            return await _Postgresql.open(target)
        case SourceType.MYSQL:
            return _Mysql(await MysqlSession.open(target, **limits))
        case SourceType.SQL_SERVER:
            session = await SqlServerSession.open(target, max_cell_bytes=2**24, **limits)
            return _SqlServer(session)
        case SourceType.ORACLE:
            return _Oracle(await OracleSession.open(target, statement_seconds=_STATEMENT_SECONDS))
    raise AssertionError(address.type)


@dataclass(frozen=True, slots=True)
class Collections:
    """MongoDB's side of a run, through its own driver."""

    address: Address

    async def insert(self, name: str, documents: Sequence[Mapping[str, Any]]) -> None:
        await trio.to_thread.run_sync(self._insert, name, documents)

    async def drop(self, *names: str) -> None:
        await trio.to_thread.run_sync(self._drop, names)

    def _insert(self, name: str, documents: Sequence[Mapping[str, Any]]) -> None:
        with self._client() as client:
            client[self.address.database][name].insert_many([dict(each) for each in documents])

    def _drop(self, names: Sequence[str]) -> None:
        with self._client() as client:
            for name in names:
                client[self.address.database].drop_collection(name)

    def _client(self) -> "pymongo.MongoClient[dict[str, Any]]":
        source = self.address.metadata.get("authSource", "admin")
        keywords: dict[str, Any] = {"serverSelectionTimeoutMS": 10_000}
        if self.address.user:
            keywords |= {
                "username": self.address.user,
                "password": self.address.password,
                "authSource": source,
            }
        if self.address.tls is not None and self.address.tls.mode not in ("disable", "false"):
            # the rows of the tests are no secret; the connector's own TLS is what is verified
            keywords |= {"tls": True, "tlsInsecure": True}
        return pymongo.MongoClient(self.address.host, self.address.port, **keywords)
