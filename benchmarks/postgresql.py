"""PostgreSQL to a sealed object, beside psql on the same table in the same run (design section 12).

``python -m benchmarks.postgresql [--rounds N] [--usual]``. Measurements are interleaved, each in a
process of its own, and medians are compared: the machine's other work then meets all alike. The
server is ``FETCHER_BENCH_POSTGRES_DSN`` (loopback by default); with ``FETCHER_BENCH_S3_ENDPOINT``
the whole way is also measured to S3.
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

from benchmarks.postgresql_table import COLUMNS, ROWS, SCHEMA_TABLES, TABLE, conninfo, prepare

Measured = dict[str, Any]

PEER: Final = "psql_row_to_json"
MEASURE_SECONDS: Final = 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--usual", action="store_true", help="also dictionaries, json, one blob")
    arguments, _ = parser.parse_known_args()
    prepare()
    names = ["connector", "sealed_to_folder"]
    if os.environ.get("FETCHER_BENCH_S3_ENDPOINT"):
        # In a process of its own: what this one holds counts into the peak of those it starts.
        subprocess.run([sys.executable, "-m", "benchmarks.bucket"], check=True, timeout=60)
        names.append("sealed_to_s3")
    runs: dict[str, list[Measured]] = {name: [] for name in (PEER, *names, "schema")}
    for _ in range(arguments.rounds):
        runs[PEER].append(_psql())
        for name in names:
            runs[name].append(_measure(name))
        runs["schema"].append(_measure("schema"))
    if arguments.usual:
        runs["usual"] = [_measure("usual")]
    for name, measured in runs.items():
        _tell({"figure": f"postgresql.{name}", **_median(measured, runs[PEER])})


def _tell(figure: Measured) -> None:
    print(json.dumps(figure), flush=True)


def _psql() -> Measured:
    columns = ", ".join(COLUMNS)
    copy = f"\\copy (select row_to_json(t) from (select {columns} from {TABLE}) t) to '/dev/null'"
    cpu = _children_cpu()
    started = time.perf_counter()
    subprocess.run(
        ["psql", conninfo(), "-X", "-q", "-c", copy], check=True, timeout=MEASURE_SECONDS
    )
    seconds = time.perf_counter() - started
    return {"rows": ROWS, "seconds": seconds, "cpu_seconds": _children_cpu() - cpu, "peak_mib": 0}


def _measure(name: str) -> Measured:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.postgresql_measures", name],
        check=True,
        stdout=subprocess.PIPE,
        timeout=MEASURE_SECONDS,
    )
    measured: Measured = json.loads(answer.stdout)
    expected = SCHEMA_TABLES if name == "schema" else ROWS
    assert measured["rows"] == expected, (name, measured)
    return measured


def _median(measured: list[Measured], peer: list[Measured]) -> Measured:
    seconds = statistics.median(run["seconds"] for run in measured)
    rows = measured[0]["rows"]
    median: Measured = {
        "rows": rows,
        "seconds": round(seconds, 2),
        "all_seconds": [round(run["seconds"], 2) for run in measured],
        "client_cpu_seconds": round(statistics.median(run["cpu_seconds"] for run in measured), 2),
    }
    if rows == ROWS:
        peer_seconds = statistics.median(run["seconds"] for run in peer)
        median["rows_per_second"] = round(rows / seconds)
        median["ratio_to_psql"] = round(peer_seconds / seconds, 2)
    if "peak_before_mib" in measured[0]:
        median["loop_late_ms"] = [run["loop_late_ms"] for run in measured]
        median["peak_mib"] = max(run["peak_mib"] for run in measured)
        median["peak_growth_mib"] = max(
            run["peak_mib"] - run["peak_before_mib"] for run in measured
        )
    return median


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
