"""How late the loop is at worst while the connector reads recorded batches (design section 12)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

import trio

from benchmarks.heartbeat import with_heartbeat
from fetcher.bootstrap.garbage import spare_what_is_there
from fetcher.datasources.mongodb.bson_json import BsonWriter
from fetcher.datasources.mongodb.connector import CollectionReader, MongoReading
from fetcher.datasources.mongodb.query import CollectionQuery
from fetcher.datasources.mongodb.rows import CollectionRows
from fetcher.domain.jobs import JobOptions

CELL_BYTES: Final = 16 * 1024 * 1024
BATCH_BYTES: Final = 1024 * 1024

T = TypeVar("T")


class _Cursor:
    """In place of the driver's: the network and the server are not what is measured."""

    def __init__(self, recorded: Sequence[bytes]) -> None:
        self._batches: Iterator[bytes] = iter(recorded)
        self.cursor_id = 0
        self.alive = False

    def __next__(self) -> bytes:
        return next(self._batches)


class _Collection:
    def __init__(self, recorded: Sequence[bytes]) -> None:
        self._recorded = recorded

    def find_raw_batches(self, *_: object, **__: object) -> _Cursor:
        return _Cursor(self._recorded)


class _Session:
    async def run(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work)


def late_ms(recorded: Sequence[bytes], documents: int) -> float:
    """Of one job that reads all of them, in a process whose start is left out of collections."""
    spare_what_is_there()
    database = cast("Any", {"t": _Collection(recorded)})
    query = CollectionQuery(name="t", collection="t", condition={}, projection=None)

    def make(_: object) -> CollectionRows:
        return CollectionRows(
            database,
            query,
            BsonWriter(JobOptions(), max_cell_bytes=CELL_BYTES),
            session=None,
            statement_seconds=60,
            chunk_bytes=BATCH_BYTES,
        )

    async def read() -> int:
        reading = MongoReading(cast("Any", _Session()), None, on_refusal=lambda: None)
        reader = CollectionReader(reading, make)
        await reader.start()
        rows = 0
        while (batch := await reader.next_batch()) is not None:
            rows += batch.row_count
        return rows

    rows, late = trio.run(with_heartbeat, read)
    assert rows == documents
    return late
