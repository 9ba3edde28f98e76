"""A source's connection in threads that all sources share."""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.datasources.sqlite import session
from fetcher.datasources.sqlite.connect import SqliteFolder, open_file
from fetcher.datasources.sqlite.session import Session
from fetcher_engine import SourceFailure, Stage
from tests.hygiene.remains import held


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


async def test_a_statement_that_somebody_still_holds_does_not_keep_a_closed_file_open(
    tmp_path: Path,
) -> None:
    """As the traceback of who was cancelled between two batches does."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE t (id INTEGER)")
        shop.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(10)])
    opened = await Session.open(
        SqliteFolder(tmp_path), "shop.db", statement_seconds=5, max_cell_bytes=1000
    )
    rows = await opened.run(lambda connection: connection.execute("SELECT id FROM t"), Stage.ROWS)
    assert next(rows) == (0,)
    assert open_descriptors(tmp_path) == ["shop.db"]
    await opened.close()
    assert open_descriptors(tmp_path) == []
    with pytest.raises(sqlite3.ProgrammingError):
        next(rows)


def open_descriptors(folder: Path) -> list[str]:
    return [
        name.removeprefix(prefix)
        for name in held().elements()
        if name.startswith(prefix := f"descriptor of {folder}/")
    ]


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


class StuckOpening:
    """Gives its connection when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.closed = threading.Event()

    def __call__(self, folder: object, name: str, cell: int) -> "StuckOpening":
        self.begun.set()
        self.let_go.wait()
        return self

    def close(self) -> None:
        self.closed.set()


async def test_opening_waits_ten_seconds_for_a_file_system(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stuck = StuckOpening()
    monkeypatch.setattr(session, "open_file", stuck)
    started = trio.current_time()
    try:
        with pytest.raises(SourceFailure) as caught:
            await Session.open(
                SqliteFolder(tmp_path), "shop.db", statement_seconds=5, max_cell_bytes=1000
            )
        assert trio.current_time() - started == session.OPEN_SECONDS
    finally:
        stuck.let_go.set()
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "timeout")
    assert stuck.closed.wait(5), "what was opened too late is closed again"


async def test_cancelled_while_opening_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stuck = StuckOpening()
    monkeypatch.setattr(session, "open_file", stuck)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(
                Session.open,
                SqliteFolder(tmp_path),
                "shop.db",
                statement_seconds=5,
                max_cell_bytes=1000,
            )
        )
        assert await trio.to_thread.run_sync(stuck.begun.wait, 5)
        nursery.cancel_scope.cancel()
    assert not stuck.closed.is_set(), "nobody waited for it"
    stuck.let_go.set()
    assert stuck.closed.wait(5)


def test_a_link_put_in_the_way_while_it_is_opened_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged, then swapped for a link to a file elsewhere: just what SQLite then opens."""
    folder, secret = tmp_path / "sources", tmp_path / "secret.db"
    folder.mkdir()
    for path in (folder / "shop.db", secret):
        with closing(sqlite3.connect(path)) as made:
            made.execute("CREATE TABLE t (id INTEGER)")
    real: Callable[..., sqlite3.Connection] = sqlite3.connect
    opened: list[sqlite3.Connection] = []

    def swapping(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        (folder / "shop.db").unlink()
        (folder / "shop.db").symlink_to(secret)
        opened.append(real(*args, **kwargs))
        return opened[0]

    monkeypatch.setattr(sqlite3, "connect", swapping)
    outcome = open_file(SqliteFolder(folder), "shop.db", 1000)
    assert isinstance(outcome, SourceFailure)
    assert outcome.reason == "path_refused"
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_another_file_put_in_its_place_while_it_is_opened_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop.db", "other.db"):
        with closing(sqlite3.connect(tmp_path / name)) as made:
            made.execute("CREATE TABLE t (id INTEGER)")
    real: Callable[..., sqlite3.Connection] = sqlite3.connect

    def swapping(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        (tmp_path / "other.db").rename(tmp_path / "shop.db")
        return real(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", swapping)
    outcome = open_file(SqliteFolder(tmp_path), "shop.db", 1000)
    assert isinstance(outcome, SourceFailure)
    assert outcome.reason == "path_refused"


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_journal_that_is_no_file_is_not_opened(tmp_path: Path, suffix: str) -> None:
    """A pipe would be waited for without end."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.execute("CREATE TABLE t (id INTEGER)")
    os.mkfifo(tmp_path / f"shop.db{suffix}")
    outcome = open_file(SqliteFolder(tmp_path), "shop.db", 1000)
    assert isinstance(outcome, SourceFailure)
    assert (outcome.stage, outcome.reason) == (Stage.SESSION, "path_refused")


async def test_a_schema_that_is_no_text_is_that_of_a_corrupt_file(tmp_path: Path) -> None:
    """SQLite's message quotes it, and the module cannot decode that."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as shop, shop:
        shop.execute("CREATE TABLE canary (id INTEGER)")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"CREATE TABLE canary", b"CREATE TABLE can\xff\xff'"))
    with pytest.raises(SourceFailure) as caught:
        await Session.open(
            SqliteFolder(tmp_path), "shop.db", statement_seconds=5, max_cell_bytes=1000
        )
    assert caught.value.reason == "corrupt"
