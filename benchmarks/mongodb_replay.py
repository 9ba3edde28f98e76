"""A MongoDB server that knows one answer: ``python -m benchmarks.mongodb_replay`` (a process of its
own) prints its port and serves recorded batches until its input ends.

Every driver gets the same bytes from it, as fast as it can take them: up to 40 000 documents of the
ten mixed columns again and again, and rows of 1 MiB. It neither filters nor projects: what is asked
for must be all that there is. One reader at a time.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import bson
import trio
from bson import ObjectId
from bson.raw_bson import RawBSONDocument

from benchmarks.mongodb_documents import Document, mixed
from benchmarks.sizes import LARGE_ROW_BYTES, LARGE_ROWS, LARGE_TABLE, ROWS, TABLE
from tests.servers.fake_mongo import batch, fake_mongo

DATABASE: Final = "fetcher_src_bench"
PORT_VARIABLE: Final = "FETCHER_BENCH_MONGO_REPLAY_PORT"
COLUMNS: Final = tuple(mixed(0))

_RECORDED: Final = 40_000
_RECORDED_LARGE: Final = 8
_SAMPLED: Final = 8
_FIRST_BATCH: Final = 101
_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""A server's first answer and the others, where nothing is said of their sizes."""
_CURSOR: Final = 1


def large(number: int) -> Document:
    """1 MiB and a little."""
    return {
        "_id": ObjectId(f"{number:024x}"),
        "body": f'{number:032d}"é\n' * (LARGE_ROW_BYTES // 36),
    }


class Recording:
    """One collection: so many rows, which are some documents again and again."""

    def __init__(
        self, name: str, make: Callable[[int], Document], rows: int, recorded: int
    ) -> None:
        self._namespace = f"{DATABASE}.{name}"
        self._rows = rows
        self._documents = [
            RawBSONDocument(bson.encode(make(number))) for number in range(min(rows, recorded))
        ]
        self._at_most = max(1, _ANSWER_BYTES // len(self._documents[0].raw))
        self._given = rows

    def begin(self, rows: int) -> None:
        """Anew, with the last so many rows."""
        self._given = max(0, self._rows - rows)

    def answer(self, wanted: int, *, first: bool) -> Mapping[str, Any]:
        """The next documents; no cursor behind the last."""
        there = self._documents
        begin, count = self._given, min(wanted, self._at_most, self._rows - self._given)
        self._given += count
        documents = [there[number % len(there)] for number in range(begin, begin + count)]
        cursor = _CURSOR if self._given < self._rows else 0
        return batch(*documents, cursor=cursor, first=first, of=self._namespace)


class _Answers:
    def __init__(self) -> None:
        self._recordings = {
            TABLE: Recording(TABLE, mixed, ROWS, _RECORDED),
            LARGE_TABLE: Recording(LARGE_TABLE, large, LARGE_ROWS, _RECORDED_LARGE),
        }

    def find(self, command: dict[str, Any]) -> Mapping[str, Any]:
        recording = self._recordings[command["find"]]
        recording.begin(command.get("limit") or ROWS)
        return recording.answer(command.get("batchSize", _FIRST_BATCH), first=True)

    def get_more(self, command: dict[str, Any]) -> Mapping[str, Any]:
        recording = self._recordings[command["collection"]]
        return recording.answer(command.get("batchSize", _ANSWER_BYTES), first=False)

    def sample(self, command: dict[str, Any]) -> Mapping[str, Any]:
        """As the driver asks for raw batches: nothing at first."""
        recording = self._recordings[command["aggregate"]]
        recording.begin(_SAMPLED)
        return recording.answer(command["cursor"].get("batchSize", 0), first=True)

    def count(self, _: dict[str, Any]) -> Mapping[str, Any]:
        return {"n": ROWS, "ok": 1.0}

    def collections(self, _: dict[str, Any]) -> Mapping[str, Any]:
        return batch(*({"name": name, "type": "collection"} for name in self._recordings))


async def serve() -> None:
    answers = _Answers()
    async with fake_mongo(
        find=answers.find,
        getMore=answers.get_more,
        aggregate=answers.sample,
        count=answers.count,
        listCollections=answers.collections,
    ) as server:
        print(server.port, flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)


@contextmanager
def replaying() -> Iterator[tuple[int, int]]:
    """The port of such a server and its process, until the context ends."""
    command = [sys.executable, "-m", "benchmarks.mongodb_replay"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
        process.communicate()


if __name__ == "__main__":
    trio.run(serve)
