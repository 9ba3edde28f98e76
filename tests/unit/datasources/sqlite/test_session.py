"""A source's connection in threads that all sources share."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import cast

import trio
from trio.testing import MockClock

from fetcher.datasources.sqlite import session
from fetcher.datasources.sqlite.connect import SqliteFolder
from fetcher.datasources.sqlite.session import Session


async def test_closing_waits_for_nobody_elses_statement(tmp_path: Path) -> None:
    """It is shielded: behind eight slow statements a cancelled job would stay for minutes."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute("CREATE TABLE t (id INTEGER)")
    opened = await Session.open(
        SqliteFolder(tmp_path), "shop.db", statement_seconds=5, max_cell_bytes=1000
    )
    threads = session._THREADS
    others = [object() for _ in range(int(threads.total_tokens))]
    for other in others:
        threads.acquire_on_behalf_of_nowait(other)
    closed = trio.Event()

    async def close() -> None:
        await opened.close()
        closed.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(close)
        with trio.move_on_after(5) as waiting:
            await closed.wait()
        for other in others:
            threads.release_on_behalf_of(other)
    assert not waiting.cancelled_caught


class StuckConnection:
    """A file system that does not answer until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def set_progress_handler(self, handler: object, steps: int) -> None: ...

    def close(self) -> None:
        self.let_go.wait()


async def test_closing_waits_two_seconds_for_a_file_system(autojump_clock: MockClock) -> None:
    stuck = StuckConnection()
    opened = Session(cast("sqlite3.Connection", stuck), statement_seconds=5)
    started = trio.current_time()
    try:
        await opened.close()
        assert trio.current_time() - started == 2
    finally:
        stuck.let_go.set()
