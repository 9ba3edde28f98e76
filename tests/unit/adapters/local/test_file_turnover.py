"""The event file is set aside by size and time: no line is lost or split, names lead on."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
import structlog
import trio

from fetcher.adapters.local.event_log import LocalEventLog, open_event_log
from fetcher.adapters.local.file_turnover import FileTurnover, set_aside_files
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import OutgoingMessage

START = datetime(2026, 3, 14, 15, 9, 26, 535_000, tzinfo=UTC)
NAME = "events-20260314T150926535Z"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def an_event(number: int) -> OutgoingMessage:
    return OutgoingMessage(
        exchange="e", routing_key="job.completed", body=f'{{"n":{number}}}'.encode(), headers={}
    )


LINE_BYTES = len(
    orjson.dumps(
        {"exchange": "e", "routingKey": "job.completed", "headers": {}, "body": '{"n":1}'},
        option=orjson.OPT_APPEND_NEWLINE,
    )
)


def turnover(now: Callable[[], datetime], **changed: int) -> FileTurnover:
    values = {"max_bytes": 0, "max_days": 0, "kept": 0} | changed
    return FileTurnover(**values, now=now)


def numbers_in(path: Path) -> list[int]:
    data = path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    return [orjson.loads(orjson.loads(line)["body"])["n"] for line in data.splitlines()]


def all_numbers(path: Path) -> list[int]:
    return [number for file in (*set_aside_files(path), path) for number in numbers_in(file)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@asynccontextmanager
async def a_log(path: Path, **bounds: int) -> AsyncIterator[tuple[LocalEventLog, Clock]]:
    clock = Clock()
    async with open_event_log(path, turnover=turnover(clock, **bounds)) as log:
        yield log, clock


async def test_a_full_file_is_set_aside_before_the_line_that_would_not_fit(path: Path) -> None:
    async with a_log(path, max_bytes=2 * LINE_BYTES) as (log, clock):
        for number in range(5):
            await log.publish(an_event(number))
            clock.now += timedelta(seconds=1)
    aside = set_aside_files(path)
    assert [numbers_in(file) for file in (*aside, path)] == [[0, 1], [2, 3], [4]]
    assert aside[0].name == "events-20260314T150928535Z.jsonl"
    assert [file.stat().st_mode & 0o777 for file in (*aside, path)] == [0o600] * 3


async def test_names_of_one_moment_stand_in_their_order(path: Path) -> None:
    async with a_log(path, max_bytes=1) as (log, _):
        for number in range(13):
            await log.publish(an_event(number))
    assert [file.name for file in set_aside_files(path)][:3] == [
        f"{NAME}.jsonl",
        f"{NAME}.002.jsonl",
        f"{NAME}.003.jsonl",
    ]
    assert all_numbers(path) == list(range(13))


async def test_a_line_longer_than_the_bound_has_a_file_of_its_own(path: Path) -> None:
    async with a_log(path, max_bytes=1) as (log, _):
        await log.publish(an_event(0))
        assert set_aside_files(path) == []
        await log.publish(an_event(1))
    assert numbers_in(path) == [1]


async def test_a_file_holds_one_stretch_of_days_also_over_a_restart(path: Path) -> None:
    async with a_log(path, max_days=30) as (log, clock):
        await log.publish(an_event(0))
        os.utime(path, (START.timestamp(), START.timestamp()))
        await log.publish(an_event(1))
        assert set_aside_files(path) == []
    os.utime(path, (START.timestamp(), START.timestamp()))
    async with a_log(path, max_days=30) as (log, clock):
        clock.now += timedelta(days=30)
        await log.publish(an_event(2))
    (aside,) = set_aside_files(path)
    assert (numbers_in(aside), numbers_in(path)) == ([0, 1], [2])


async def test_so_many_are_kept_the_youngest(path: Path) -> None:
    async with a_log(path, max_bytes=1, kept=2) as (log, clock):
        for number in range(6):
            await log.publish(an_event(number))
            clock.now += timedelta(seconds=1)
    assert all_numbers(path) == [3, 4, 5]


STRANGERS = (
    "events-old.jsonl",
    "events-.jsonl",
    "events-2026.jsonl",
    "events-20260101T000000000Z.bak.jsonl",
    "events-20260101T000000000Z.2.jsonl",
    "events-20260101T000000000Z.jsonl.gz",
    "events-20260101T000000000Z copy.jsonl",
    "events-\u0662\u0660260101T000000000Z.jsonl",
    "eventsx20260101T000000000Z.jsonl",
)


async def test_files_of_somebody_else_are_neither_read_nor_removed(path: Path) -> None:
    for name in STRANGERS:
        path.with_name(name).write_bytes(b"mine\n")
    async with a_log(path, max_bytes=1, kept=1) as (log, clock):
        for number in range(4):
            await log.publish(an_event(number))
            clock.now += timedelta(seconds=1)
    assert all_numbers(path) == [2, 3]
    assert [path.with_name(name).read_bytes() for name in STRANGERS] == [b"mine\n"] * len(STRANGERS)


def test_more_than_a_thousand_of_one_moment_stand_in_their_order(path: Path) -> None:
    names = [f"{NAME}{number}.jsonl" for number in ("", ".002", ".999", ".1000", ".1001")]
    for name in reversed(names):
        path.with_name(name).touch()
    assert [file.name for file in set_aside_files(path)] == names


async def test_without_bounds_nothing_is_set_aside(path: Path) -> None:
    async with a_log(path) as (log, clock):
        for number in range(9):
            await log.publish(an_event(number))
            clock.now += timedelta(days=400)
    assert set_aside_files(path) == []
    assert numbers_in(path) == list(range(9))


class Follower:
    """As ``tail -F``: to the end of what it has open, then what the name leads to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self.seen: list[int] = []

    def look(self) -> None:
        moved = not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        self.seen += [orjson.loads(orjson.loads(line)["body"])["n"] for line in self._file]
        if moved:
            self._file.close()
            self._file = self._path.open("rb")
            self.look()

    def close(self) -> None:
        self._file.close()


async def test_who_follows_the_name_reads_every_line_once(path: Path) -> None:
    async with a_log(path, max_bytes=7 * LINE_BYTES) as (log, _):
        with closing(Follower(path)) as follower:
            for number in range(100):
                await log.publish(an_event(number))
                if number % 5 == 0:
                    follower.look()
            follower.look()
            assert follower.seen == list(range(100))
    assert all_numbers(path) == list(range(100))


async def test_publishing_side_by_side_loses_and_splits_no_line(path: Path) -> None:
    async with a_log(path, max_bytes=5 * LINE_BYTES) as (log, _), trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(log.publish, an_event(number))
    assert sorted(all_numbers(path)) == list(range(50))


async def test_a_file_that_cannot_be_opened_anew_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_log(path, max_bytes=LINE_BYTES) as (log, _):
        await log.publish(an_event(0))
        with monkeypatch.context() as patched:

            def no_more_files(*_: object, **__: object) -> int:
                raise OSError(24, "too many open files")

            patched.setattr(os, "open", no_more_files)
            with pytest.raises(PortUnavailable):
                await log.publish(an_event(1))
        await log.publish(an_event(1))
    assert all_numbers(path) == [0, 1]


async def test_a_file_that_somebody_moved_away_is_made_anew(path: Path) -> None:
    async with a_log(path) as (log, _):
        await log.publish(an_event(0))
        await trio.Path(path).rename(path.with_name("mine"))
        await log.publish(an_event(1))
    assert numbers_in(path.with_name("mine")) == [0]
    assert numbers_in(path) == [1]


async def test_a_file_that_is_full_takes_nothing_more_and_says_so(path: Path) -> None:
    async with open_event_log(path, max_bytes=2 * LINE_BYTES) as log:
        for number in range(2):
            await log.publish(an_event(number))
        with structlog.testing.capture_logs() as told, pytest.raises(PortUnavailable):
            await log.publish(an_event(2))
    assert [(each["event"], each["file"]) for each in told] == [("file_full", "events.jsonl")]
    assert numbers_in(path) == [0, 1]
