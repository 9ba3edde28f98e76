"""MariaDB to a sealed object, beside the ``mysql`` client with a JSON query in the same run.

``python -m benchmarks.mysql [--rounds N] [--usual]``, as ``benchmarks.postgresql``. The server is
``FETCHER_BENCH_MARIADB_HOST`` and its companions.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.mysql_table import DATABASE, ROWS, SCHEMA_TABLES, prepare, server

PEER: Final = "mysql_quick"
MEASURE_SECONDS: Final = 600
EXPECTED: Final = {"schema": SCHEMA_TABLES, "idle": 0}

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
    names = ["connector", "sealed_to_folder", "schema", "idle"]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (PEER, *names)}
    for _ in range(arguments.rounds):
        runs[PEER].append(_client())
        for name in names:
            runs[name].append(_measure(name))
    if arguments.usual:
        runs["usual"] = [_measure("usual")]
    for name, measured in runs.items():
        print(json.dumps({"figure": f"mysql.{name}", **_median(measured, runs[PEER])}), flush=True)


def _median(measured: list[dict[str, Any]], peer: list[dict[str, Any]]) -> dict[str, Any]:
    """Ratios are of runs in a row: what else the machine does is much the same for them."""
    seconds = statistics.median(run["seconds"] for run in measured)
    figure: dict[str, Any] = {
        "rows": measured[0]["rows"],
        "seconds": round(seconds, 2),
        "all_seconds": [round(run["seconds"], 2) for run in measured],
        "cpu_seconds": round(statistics.median(run["cpu_seconds"] for run in measured), 2),
    }
    if figure["rows"] == ROWS:
        pairs = zip(peer, measured, strict=False)
        ratios = [other["seconds"] / run["seconds"] for other, run in pairs]
        figure["rows_per_second"] = round(ROWS / seconds)
        figure["ratio_to_client"] = round(statistics.median(ratios), 2)
        figure["all_ratios"] = [round(ratio, 2) for ratio in ratios]
    if "peak_mib" in measured[0]:
        figure["loop_late_ms"] = [run["loop_late_ms"] for run in measured]
        figure["peak_growth_mib"] = max(
            run["peak_mib"] - run["peak_before_mib"] for run in measured
        )
    return figure


def _client() -> dict[str, Any]:
    address = server()
    cpu = _children_cpu()
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
    seconds = time.perf_counter() - started
    return {"rows": ROWS, "seconds": seconds, "cpu_seconds": _children_cpu() - cpu}


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measure(name: str) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.mysql_measures", name],
        check=True,
        stdout=subprocess.PIPE,
        timeout=MEASURE_SECONDS,
    )
    measured: dict[str, Any] = json.loads(answer.stdout)
    assert measured["rows"] == EXPECTED.get(name, ROWS), (name, measured)
    return measured


if __name__ == "__main__":
    main()
