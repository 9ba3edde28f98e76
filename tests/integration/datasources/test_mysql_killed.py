"""A process that is killed with -9 while it reads leaves nothing behind on the server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from tests.integration.datasources.mariadb import admin_of, own_database, rows_in, run_sql
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        run_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            "INSERT INTO t SELECT seq, repeat('x', 1000) FROM seq_1_to_60000",
        )
        yield address


def sessions(address: SqlAddress) -> int:
    """Others in this database."""
    ((count,),) = rows_in(
        address,
        "SELECT count(*) FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID()",
    )
    return int(count)


@contextmanager
def reader(address: SqlAddress, *, seconds: float) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.datasources.reader_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdout, process.stdin:
            wanted = {"address": asdict(address), "table": "t", "seconds": seconds}
            say(process, json.dumps(wanted))
            yield process
    finally:
        process.kill()
        process.wait(timeout=10)


def say(process: subprocess.Popen[str], line: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_killed_amid_the_rows(database: SqlAddress) -> None:
    """The server is blocked in sending, and learns at once that nobody is there."""
    with reader(database, seconds=120) as process:
        assert said(process) == "planned"
        say(process)
        assert said(process) == "reading"
        assert sessions(database) == 1
        process.kill()
        await eventually(lambda: sessions(database) == 0, deadline_seconds=10)


async def test_killed_before_the_rows(database: SqlAddress) -> None:
    """The server was told of limits: it does not look for us while it waits."""
    with (
        admin_of(database) as holder,
        holder.cursor() as cursor,
        reader(database, seconds=3) as process,
    ):
        assert said(process) == "planned"
        cursor.execute("LOCK TABLES t WRITE")
        say(process)
        # the holder is one
        await eventually(lambda: sessions(database) == 2, deadline_seconds=20)
        process.kill()
        await eventually(lambda: sessions(database) == 1, deadline_seconds=10)
