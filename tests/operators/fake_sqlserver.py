"""A SQL Server that carries out the connector's statements over the rows of the tests."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from fetcher.domain.connections import SourceType
from tests.integration.datasources.sqlserver import answering
from tests.operators.evaluation import SqlServerRows
from tests.operators.rows import COLUMNS, TABLE
from tests.operators.statements import SQLSERVER_TYPES
from tests.servers.tds import Answer, Column, Request, TdsServer, tds_server

START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    server: TdsServer

    @property
    def body(self) -> Mapping[str, object]:
        """What registers it."""
        return {
            "type": SourceType.SQL_SERVER,
            "host": "127.0.0.1",
            "port": self.server.port,
            "databaseName": "shop",
            "userName": "app",
            "password": "secret",
        }

    @property
    def asked(self) -> set[tuple[str, tuple[object, ...]]]:
        """Statements on the rows, with what was bound."""
        return {(each.text, each.values) for each in self.server.requests if _is_select(each)}


@contextmanager
def served_rows() -> Iterator[Served]:
    """The server in a thread and a loop of its own."""
    rows = SqlServerRows()
    columns = [(name, *SQLSERVER_TYPES[name]) for name in COLUMNS]
    catalogue = answering({("dbo", TABLE): columns}, {})

    def answer(request: Request) -> Answer | None:
        if _is_select(request):
            found = rows.ids(request.text, request.values)
            return Answer(columns=[Column("int not null")], rows=found)
        return catalogue(request)

    served = Served(TdsServer(answer=answer))
    ready, stop = threading.Event(), trio.Event()
    token: list[trio.lowlevel.TrioToken] = []

    async def serve() -> None:
        async with tds_server(served.server):
            token.append(trio.lowlevel.current_trio_token())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), name="fake-sqlserver")
    thread.start()
    try:
        assert ready.wait(START_SECONDS)
        yield served
    finally:
        if token:
            token[0].run_sync_soon(stop.set)
        thread.join(START_SECONDS)
        rows.close()


def _is_select(request: Request) -> bool:
    return f"FROM [dbo].[{TABLE}]" in request.text
