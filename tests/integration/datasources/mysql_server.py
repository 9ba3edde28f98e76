"""A small MySQL server of ours as a source, and what is told of it."""

import pytest
from structlog.testing import capture_logs

from fetcher.datasources.mysql.fenced_packets import FENCE
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import TENANT, a_connection, engines
from tests.servers.mysql_wire import OK, Answer, FakeMysql, Rows, Wire

PASSWORD = "canary-p\xe4ss"
ZERO = b"\0"


def to(server: FakeMysql, mode: str = "false", ca: str = "") -> Connection:
    return a_connection(
        source_type=SourceType.MYSQL,
        host="localhost",
        port=server.port,
        database="shop",
        user="reader",
        password=PASSWORD,
        tls=TlsSettings(mode=mode, ca=ca),
    )


async def reach(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        await engine.test_connection(TENANT, connection.config_name)


async def failure_of(connection: Connection) -> tuple[str, str]:
    with capture_logs() as logs, pytest.raises(EngineError) as caught:
        await reach(connection)
    assert "canary" not in repr(logs)
    return told(caught.value)


def told(error: EngineError) -> tuple[str, str]:
    """Stage and reason; nothing that was secret, or the server's own, is in it."""
    everything = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
    for secret in ("canary", "own words", "reader", "localhost"):
        assert secret not in everything
    return str(error.stage), str(error.reason)


def words(wire: Wire) -> list[bytes]:
    """What was heard that holds the password as it is."""
    return [one for one in wire.heard if PASSWORD.encode() in one]


def fenced(text: bytes) -> tuple[bytes]:
    """A row as the statement asks for it."""
    return (FENCE + text + FENCE,)


ROW = fenced(b'{"doc":null,"id":1}')


def mysql(statement: str) -> Answer:
    """A database ``shop`` with the table ``runs``, as MySQL 8.0 tells of it."""
    if "TABLE_ROWS FROM information_schema.TABLES" in statement:
        return Rows(3, [("shop", "runs", "2")])
    if "information_schema.TABLES" in statement:
        return Rows(2, [("shop", "runs")])
    if "information_schema.COLUMNS" in statement:
        return Rows(
            8,
            [
                ("runs", "id", "int", "int", "NO", None, None, None),
                ("runs", "doc", "json", "json", "YES", None, None, None),
            ],
        )
    if "information_schema.STATISTICS" in statement:
        return Rows(2, [("runs", "id")])
    if statement.startswith("SELECT CONCAT") or " FROM `shop`.`runs`" in statement:
        return Rows(1, [fenced(b'{"doc":{"a": 1.10},"id":1}'), fenced(b'{"doc":null,"id":2}')])
    return OK
