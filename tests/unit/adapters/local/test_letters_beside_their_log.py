"""Dead letters of a service that runs: what is removed, and what is appended meanwhile."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, cast

import orjson
import trio
import trio.testing

from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.adapters.local.dead_letter_level import LocalDeadLetterLevels
from fetcher.adapters.local.event_log import LocalEventLog, open_event_log
from fetcher.adapters.local.queue_depths import LocalQueueDepths
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.bootstrap.clock import utc_now
from fetcher.ports import OutgoingMessage, QueueDepth


def a_message(n: int) -> OutgoingMessage:
    return OutgoingMessage(
        exchange="fetcher.dlx", routing_key="k", body=f"{n}".encode(), headers={"n": n}
    )


def bodies(path: Path) -> list[str]:
    return [orjson.loads(line)["body"] for line in path.read_bytes().splitlines()]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_what_is_appended_during_a_window_and_after_it_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "dead-letters.jsonl"
    async with open_event_log(path) as log:
        for n in range(3):
            await log.publish(a_message(n))
        async with LocalDeadLetterQueue(path, log).open() as window:
            first, second, _ = await window.next_page(limit=10)
            await window.remove([first])
            await log.publish(a_message(3))
            await window.remove([second])
        await log.publish(a_message(4))
        assert bodies(path) == ["2", "3", "4"]
        assert path.stat().st_mode & 0o777 == 0o600
        assert names(tmp_path) == [path.name]


@asynccontextmanager
async def depths_of(path: Path) -> AsyncIterator[tuple[LocalEventLog, LocalQueueDepths]]:
    """With one message in the work queue."""
    async with open_event_log(path) as log:
        work = LocalWorkQueue("work", dead_letters=log, now=utc_now)
        await work.publish(OutgoingMessage(exchange="", routing_key="work", body=b"", headers={}))
        yield log, LocalQueueDepths(work, LocalDeadLetterLevels(path, now=utc_now))


def told(dead_letters: int) -> list[QueueDepth]:
    return [
        QueueDepth(name="work", purpose="work", ready=1),
        QueueDepth(name="fetcher.dlq", purpose="dead_letters", ready=dead_letters),
    ]


async def test_depths_are_of_the_queue_and_of_the_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "dead-letters.jsonl"
    async with depths_of(path) as (log, depths):
        await log.publish(a_message(1))
        with path.open("ab") as torn:
            torn.write(b'{"exchange"')
        assert await depths.depths() == told(1)


async def test_depths_read_no_line_a_second_time(tmp_path: Path) -> None:
    path = tmp_path / "dead-letters.jsonl"
    async with depths_of(path) as (log, depths):
        for n in range(9):
            await log.publish(a_message(n))
        assert await depths.depths() == told(9)
        with path.open("r+b") as file:
            # Who read it once more would find one line there.
            file.write(b" " * (path.stat().st_size - 1))
        await log.publish(a_message(9))
        assert await depths.depths() == told(10)


class SlowPath:
    """Opening takes until ``may_open``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.opening = 0
        self.may_open = threading.Event()

    def open(self, mode: str) -> BinaryIO:
        self.opening += 1
        self.may_open.wait(10)
        return cast("BinaryIO", self._path.open(mode))


async def test_looks_at_the_same_time_count_every_letter_once(tmp_path: Path) -> None:
    path = tmp_path / "dead-letters.jsonl"
    async with open_event_log(path) as log:
        await log.publish(a_message(1))
    slow = SlowPath(path)
    levels = LocalDeadLetterLevels(cast("Path", slow), now=utc_now)
    counts: list[int] = []

    async def look() -> None:
        counts.append((await levels.level()).messages)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(look)
        await trio.testing.wait_all_tasks_blocked()
        assert slow.opening <= 1
        slow.may_open.set()
    assert counts == [1, 1, 1]
