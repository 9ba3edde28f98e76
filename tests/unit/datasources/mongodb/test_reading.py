"""One stream of collections: a snapshot where the server gives one, and what is told where not."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from fetcher.datasources.mongodb.connect import MongoSession
from fetcher.datasources.mongodb.connector import MakeRows, MongoReading
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.datasources.threads import PROCESS_THREADS

SNAPSHOT = cast("Any", object())


class ASession:
    """Runs what it is given at once."""

    def __init__(self) -> None:
        self.last_words: Callable[[], None] | None = None
        self.threads = PROCESS_THREADS

    async def run(self, work: Callable[[], object]) -> object:
        return work()


class Rows:
    """Refuses a snapshot as often as ``refusals`` says, by the session it is read in."""

    def __init__(self, refusals: list[object]) -> None:
        self.refusals = refusals
        self.read_in: list[object] = []

    def make(self, session: object) -> "Rows":
        self.read_in.append(session)
        return self

    def fetch(self) -> None:
        if self.refusals:
            self.refusals.pop()
            raise SnapshotRefused


def a_reading(snapshot: object, told: list[str]) -> MongoReading:
    return MongoReading(
        cast("MongoSession", ASession()),
        cast("Any", snapshot),
        on_refusal=lambda: told.append("refused"),
    )


async def test_a_snapshot_that_is_refused_before_any_row_is_done_without_and_told() -> None:
    told: list[str] = []
    reading, first, second = a_reading(SNAPSHOT, told), Rows(["once"]), Rows([])
    await reading.start(cast("MakeRows", first.make))
    await reading.start(cast("MakeRows", second.make))
    assert (first.read_in, second.read_in) == ([SNAPSHOT, None], [None])
    assert told == ["refused"]


async def test_a_snapshot_that_is_lost_after_the_first_collection_fails_the_job() -> None:
    told: list[str] = []
    reading = a_reading(SNAPSHOT, told)
    await reading.start(cast("MakeRows", Rows([]).make))
    with pytest.raises(SnapshotRefused):
        await reading.start(cast("MakeRows", Rows(["once"]).make))
    assert told == []


async def test_a_refusal_without_a_snapshot_is_a_failure() -> None:
    with pytest.raises(SnapshotRefused):
        await a_reading(None, []).start(cast("MakeRows", Rows(["once"]).make))
