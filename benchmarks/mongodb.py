"""MongoDB's raw batches to JSON, beside ``bson.decode_all`` of the same batches in the same run.

``python -m benchmarks.mongodb [--mongodb-rounds N] [--mongodb-documents N]``. Rounds are
interleaved, CPU time counts, medians are compared. Each batch is dropped before the next. The
second peer is the usual way: driver dictionaries to bytes by orjson, which asks back for what it
does not know; it neither sorts nor keeps NaN.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final

import bson
import orjson
from bson import Decimal128, ObjectId

from benchmarks.mongodb_documents import COLLECTIONS, batches
from fetcher.datasources.mongodb.bson_json import BsonWriter, document_starts
from fetcher.datasources.mongodb.rows import CHUNK_BYTES
from fetcher.domain.jobs import JobOptions

PEER: Final = "decode_all"

Ways = dict[str, Callable[[Sequence[bytes]], None]]


def by_decode_all(recorded: Sequence[bytes]) -> None:
    for batch in recorded:
        bson.decode_all(batch)


def by_orjson(recorded: Sequence[bytes]) -> None:
    for batch in recorded:
        orjson.dumps(bson.decode_all(batch), _default)


def _default(value: object) -> str:
    if isinstance(value, ObjectId | Decimal128):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError


def by_writer(recorded: Sequence[bytes]) -> None:
    """As rows are read: a new writer, chunks of the connector's size, UTF-8 at the end."""
    writer = BsonWriter(JobOptions(), max_cell_bytes=16 * 1024 * 1024)
    for batch in recorded:
        starts = [*document_starts(batch), len(batch)]
        first = 0
        while first < len(starts) - 1:
            last = first + 1
            while last < len(starts) - 1 and starts[last + 1] - starts[first] <= CHUNK_BYTES:
                last += 1
            offset = starts[first]
            chunk = batch[offset : starts[last]]
            ",".join(writer.rows(chunk, [at - offset for at in starts[first:last]])).encode()
            first = last


WAYS: Final[Ways] = {PEER: by_decode_all, "decode_orjson": by_orjson, "writer": by_writer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mongodb-rounds", type=int, default=9)
    parser.add_argument("--mongodb-documents", type=int, default=40_000)
    arguments, _ = parser.parse_known_args()
    count: int = arguments.mongodb_documents
    for name, make in COLLECTIONS.items():
        recorded = list(batches(make, count))
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.mongodb_rounds):
            for way, run in WAYS.items():
                seconds[way].append(_cpu_seconds(run, recorded))
        peer = statistics.median(seconds[PEER])
        for way, measured in seconds.items():
            median = statistics.median(measured)
            figure = {
                "figure": f"mongodb.{name}.{way}",
                "documents": count,
                "seconds": round(median, 4),
                "all_seconds": [round(one, 4) for one in measured],
                "documents_per_second": round(count / median),
                "ratio_to_decode_all": round(peer / median, 2),
            }
            print(json.dumps(figure), flush=True)


def _cpu_seconds(run: Callable[[Sequence[bytes]], None], recorded: Sequence[bytes]) -> float:
    started = time.process_time()
    run(recorded)
    return time.process_time() - started


if __name__ == "__main__":
    main()
