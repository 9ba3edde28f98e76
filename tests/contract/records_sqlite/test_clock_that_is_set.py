"""The machine's clock is set while records wait: they wait as long as they would have."""

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from fetcher.adapters.sqlite.clock import LEAST_MS, MachineClock, move_waiting
from fetcher.adapters.sqlite.database import Database, Session

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
JUMPS = [HOUR_MS, -HOUR_MS, DAY_MS, -DAY_MS, LEAST_MS, -LEAST_MS]
WAITS = {
    "processing": ("lease_until",),
    "pending": ("due_at", "dispatched_at", "dispatch_lease_until"),
    "completed": ("event_due_at", "event_lease_until", "cleanup_due", "cleanup_until"),
}
FACTS = ("created_at", "started_at", "completed_at", "event_time")
ALSO_FACTS = ("result_deleted_at", "cancel_requested")
NO_TIMES = ("attempt", "takeovers", "dispatch_seq", "event_attempts", "event_pending")


@dataclass
class Clocks:
    wall: float = 1_800_000_000.0
    monotonic: float = 5_000.0

    def machine(self) -> MachineClock:
        return MachineClock(lambda: self.wall, lambda: self.monotonic)

    def pass_seconds(self, seconds: float, *, set_ms: int = 0) -> None:
        self.monotonic += seconds
        self.wall += seconds + set_ms / 1000


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
async def database(path: Path, clocks: Clocks) -> AsyncIterator[Database]:
    opened = await Database.open(path, clock=clocks.machine())
    yield opened
    await opened.aclose()


def fill(session: Session) -> None:
    """A job in each state in which something waits, and a breaker; every time a minute ahead."""
    times = [*FACTS, *(column for columns in WAITS.values() for column in columns)]
    for number, status in enumerate(WAITS):
        values: dict[str, str | int | bytes | None] = {
            **dict.fromkeys(times, session.now_ms + 60_000),
            "id": bytes([number]) * 16,
            "status": status,
            "event_pending": int(status == "completed"),
            **dict.fromkeys(("attempt", "takeovers", "dispatch_seq"), 0),
            **dict.fromkeys(("request_hash", "request_id", "product"), str(number)),
            **dict.fromkeys(("mapped_fields", "filters", "metadata", "options"), "{}"),
            "attempts": "[]",
        }
        names = ", ".join(values)
        places = ", ".join(f":{name}" for name in values)
        session.change(f"INSERT INTO job ({names}) VALUES ({places})", values)
    at = session.now_ms + 60_000
    session.change(
        "INSERT INTO connection_breaker VALUES (zeroblob(16), 'c', 1, 's', 'r', 5, 1,"
        " :at, zeroblob(16), :at, :at)",
        {"at": at},
    )


def waits(path: Path, now_ms: int) -> dict[str, int]:
    """How long each time is ahead of now."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        found = {
            f"{status}.{column}": database.execute(
                f"SELECT {column} FROM job WHERE status = ?", (status,)
            ).fetchone()[0]
            for status, columns in WAITS.items()
            for column in columns
        }
        breaker = database.execute("SELECT * FROM connection_breaker").fetchone()
        found |= {name: breaker[name] for name in ("retry_at", "probe_until", "changed_at")}
    return {name: at - now_ms for name, at in found.items()}


def facts(path: Path) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT {', '.join(FACTS)} FROM job ORDER BY id").fetchall()


async def now_of(database: Database) -> int:
    return await database.write(lambda session: session.now_ms)


@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_what_waits_does_so_as_long_and_what_was_is_left(
    database: Database, path: Path, clocks: Clocks, jump_ms: int
) -> None:
    await database.write(fill)
    before = facts(path)
    clocks.pass_seconds(20.0, set_ms=jump_ms)
    left = waits(path, await now_of(database))
    assert set(left.values()) == {40_000}
    assert len(left) == 11
    assert facts(path) == before


async def test_what_clocks_drift_apart_moves_nothing(
    database: Database, path: Path, clocks: Clocks
) -> None:
    start_ms = await now_of(database)
    await database.write(fill)
    for _ in range(10):
        clocks.pass_seconds(1.0, set_ms=LEAST_MS - 1)
        await now_of(database)
    assert set(waits(path, start_ms).values()) == {60_000}


async def test_a_move_that_is_undone_with_its_transaction_is_made_by_the_next(
    database: Database, path: Path, clocks: Clocks
) -> None:
    def fail(_session: Session) -> None:
        raise LookupError

    await database.write(fill)
    clocks.pass_seconds(20.0, set_ms=-DAY_MS)
    with pytest.raises(LookupError):
        await database.write(fail)
    assert set(waits(path, await now_of(database)).values()) == {40_000}
    assert set(waits(path, await now_of(database)).values()) == {40_000}


@pytest.mark.parametrize(
    ("jumps_ms", "ahead_ms"),
    [
        ((DAY_MS,), DAY_MS),
        ((-DAY_MS,), 0),
        ((DAY_MS, -DAY_MS), 0),
        ((-DAY_MS, DAY_MS), DAY_MS),
        ((DAY_MS, HOUR_MS), DAY_MS + HOUR_MS),
    ],
)
async def test_ages_are_by_the_clock_that_was_furthest_back(
    database: Database, clocks: Clocks, jumps_ms: tuple[int, ...], ahead_ms: int
) -> None:
    """Also for who reads before anybody has written."""
    old = 0
    for jump_ms in jumps_ms:
        clocks.pass_seconds(5.0, set_ms=jump_ms)
        old = await database.read(lambda session: session.now_ms - session.old_ms(60.0))
        assert await database.write(lambda session: session.now_ms - session.old_ms(60.0)) == old
    assert old == 60_000 + ahead_ms


async def test_who_looks_while_it_is_followed_sees_it_set_all_the_same(clocks: Clocks) -> None:
    """In another thread, at any line: what is not old by the clock before would be deleted."""
    clock = clocks.machine()
    clocks.pass_seconds(5.0, set_ms=DAY_MS)
    look = clock.look()
    seen: list[int] = []

    def at_each_line(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not MachineClock.follow.__code__:
            return None
        if event == "line":
            seen.append(clock.look().set_ahead_ms)
        return at_each_line

    before = sys.gettrace()
    sys.settrace(at_each_line)
    try:
        clock.follow(look)
    finally:
        sys.settrace(before)
    assert len(seen) > 1
    assert set(seen) == {DAY_MS} == {clock.look().set_ahead_ms}


async def test_each_column_with_a_time_waits_or_is_a_fact(database: Database) -> None:
    """A new one is moved with the clock, or is told here to be none that is waited for."""
    columns = await database.read(lambda session: session.rows("PRAGMA table_info(job)"))
    numbers = {column["name"] for column in columns if column["type"] == "INTEGER"}
    waiting = {name for names in WAITS.values() for name in names}
    assert numbers == waiting | {*FACTS, *ALSO_FACTS, *NO_TIMES, "result_bytes", "result_rows"}


async def test_indexes_lead_to_the_jobs_that_wait(database: Database) -> None:
    plans: list[str] = []

    def explain(session: Session) -> None:
        statements: list[str] = []
        session.connection.set_trace_callback(statements.append)
        move_waiting(session.connection, DAY_MS)
        session.connection.set_trace_callback(None)
        for statement in statements:
            found = session.rows(f"EXPLAIN QUERY PLAN {statement}")
            plans.append(str(found[0]["detail"]))

    await database.write(explain)
    of_jobs = [plan for plan in plans if " job" in plan]
    assert len(of_jobs) == 4
    assert [plan for plan in of_jobs if "INDEX" not in plan] == []
