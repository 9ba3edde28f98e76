"""A source's connection in threads that all sources share."""

import sqlite3
from contextlib import closing
from pathlib import Path

import trio

from fetcher.datasources.sqlite import database
from fetcher.datasources.sqlite.database import SqliteDatabase, SqliteFolder


async def test_closing_waits_for_nobody_elses_statement(tmp_path: Path) -> None:
    """It is shielded: behind eight slow statements a cancelled job would stay for minutes."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute("CREATE TABLE t (id INTEGER)")
    opened = await SqliteDatabase.open(
        SqliteFolder(tmp_path), "shop.db", statement_seconds=5, max_cell_bytes=1000
    )
    threads = database._THREADS
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
