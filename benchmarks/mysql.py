"""MariaDB to a sealed object, beside the ``mysql`` client with a JSON query in the same run.

``python -m benchmarks.mysql [--rounds N] [--usual]``, as ``benchmarks.postgresql``. The server is
``FETCHER_BENCH_MARIADB_HOST`` and its companions.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.mysql_table import DATABASE, ROWS, SCHEMA_TABLES, prepare, server

PEER: Final = "mysql_quick"
MEASURE_SECONDS: Final = 600

_QUERY: Final = r"""SELECT CONCAT('{"active":', active, ',"amount":"', amount, '","big":', big,
 ',"created":"', REPLACE(created, ' ', 'T'), 'Z","day":"', day, 'T00:00:00Z","doc":', doc,
 ',"id":', id, ',"name":', JSON_QUOTE(name), ',"score":', IFNULL(score, 'null'), ',"uid":',
 JSON_QUOTE(uid), '}') FROM mixed_rows"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--usual", action="store_true", help="also dictionaries, json, one blob")
    arguments, _ = parser.parse_known_args()
    prepare()
    names = ["connector", "sealed_to_folder", "schema"]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (PEER, *names)}
    for _ in range(arguments.rounds):
        runs[PEER].append(_client())
        for name in names:
            runs[name].append(_measure(name))
    if arguments.usual:
        runs["usual"] = [_measure("usual")]
    peer = statistics.median(run["seconds"] for run in runs[PEER])
    for name, measured in runs.items():
        seconds = statistics.median(run["seconds"] for run in measured)
        figure = {"figure": f"mysql.{name}", "seconds": round(seconds, 2), **measured[-1]}
        figure["seconds"] = round(seconds, 2)
        if measured[0]["rows"] == ROWS:
            figure["rows_per_second"] = round(ROWS / seconds)
            figure["ratio_to_client"] = round(peer / seconds, 2)
        print(json.dumps(figure), flush=True)


def _client() -> dict[str, Any]:
    address = server()
    started = time.perf_counter()
    subprocess.run(
        [
            "mysql",
            "-q",
            "-N",
            "-r",
            f"-h{address['host']}",
            f"-P{address['port']}",
            f"-u{address['user']}",
            "--default-character-set=utf8mb4",
            "-e",
            _QUERY,
            DATABASE,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "MYSQL_PWD": address["password"]},
        timeout=MEASURE_SECONDS,
    )
    return {"rows": ROWS, "seconds": time.perf_counter() - started}


def _measure(name: str) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.mysql_measures", name],
        check=True,
        stdout=subprocess.PIPE,
        timeout=MEASURE_SECONDS,
    )
    measured: dict[str, Any] = json.loads(answer.stdout)
    assert measured["rows"] == (SCHEMA_TABLES if name == "schema" else ROWS), (name, measured)
    return measured


if __name__ == "__main__":
    main()
