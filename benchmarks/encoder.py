"""Rows to JSON: the Engine's own way and orjson, beside ``json.dumps`` in the same run.

``python -m benchmarks.encoder [--encoder-rounds N]``. Rounds are interleaved and medians compared.
The peer gets all it needs to give the same values: compact, columns sorted, not escaped, and a
``default`` for the types that it does not know. It leaves text, the encoders leave UTF-8: a second
peer encodes its text too, and stands beside the first, which is the one to be judged by.
"""

import argparse
import base64
import gc
import json
import statistics
import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from benchmarks.encoder_rows import Row, row_sets
from fetcher.datasources.row_encoding import OrjsonRowEncoding
from fetcher_engine import RowEncoder, encode_value

PEER: Final = "json_dumps"
BYTES_PEER: Final = "json_dumps_to_bytes"
PASSES: Final = 5
"""A round goes over the rows as often: each then takes 20 ms at least."""


def by_json_dumps(rows: list[Row]) -> str:
    return json.dumps(
        rows, separators=(",", ":"), ensure_ascii=False, sort_keys=True, default=_as_json_value
    )


def by_json_dumps_to_bytes(rows: list[Row]) -> bytes:
    return by_json_dumps(rows).encode()


def _as_json_value(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return encode_value(value)[1:-1]
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def by_engine(rows: list[Row]) -> None:
    for _ in RowEncoder(source="s", table="t").encode(rows):
        pass


def by_orjson(rows: list[Row]) -> None:
    for _ in RowEncoder(source="s", table="t", encoding=OrjsonRowEncoding()).encode(rows):
        pass


ENCODERS: Final[dict[str, Callable[[list[Row]], object]]] = {
    PEER: by_json_dumps,
    BYTES_PEER: by_json_dumps_to_bytes,
    "stdlib": by_engine,
    "orjson": by_orjson,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder-rounds", type=int, default=15)
    arguments, _ = parser.parse_known_args()
    for rows_name, rows in row_sets().items():
        # the rows of all sets are alive: that the collector looks at them is no encoder's doing
        gc.collect()
        gc.freeze()
        seconds: dict[str, list[float]] = {name: [] for name in ENCODERS}
        for _ in range(arguments.encoder_rounds):
            for name, encode in ENCODERS.items():
                seconds[name].append(_seconds(encode, rows))
        for name, measured in seconds.items():
            figure = {"figure": f"encoder.{rows_name}.{name}", "rows": PASSES * len(rows)}
            print(json.dumps(figure | _median(measured, seconds)), flush=True)


def _seconds(encode: Callable[[list[Row]], object], rows: list[Row]) -> float:
    started = time.process_time()
    for _ in range(PASSES):
        encode(rows)
    return time.process_time() - started


def _median(measured: list[float], all_measured: dict[str, list[float]]) -> dict[str, Any]:
    seconds = statistics.median(measured)
    return {
        "seconds": round(seconds, 4),
        "all_seconds": [round(one, 4) for one in measured],
        "ratio_to_json_dumps": round(statistics.median(all_measured[PEER]) / seconds, 2),
        "ratio_to_its_bytes": round(statistics.median(all_measured[BYTES_PEER]) / seconds, 2),
    }


if __name__ == "__main__":
    main()
