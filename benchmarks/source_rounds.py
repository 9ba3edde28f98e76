"""Measurements of one source in turns, each in a process of its own, and what comes of them.

What else the machine does is much the same for runs in a row: ratios are those of such pairs, and
their median counts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from benchmarks.cpu_time import children_cpu_seconds, server_cpu_seconds
from benchmarks.sizes import LARGE_ROWS, ROWS, SCHEMA_TABLES

Measured = dict[str, Any]
Run = Callable[[], Measured]

MEASURE_SECONDS: Final = 600
FEW_ROUNDS: Final = 2
EXPECTED: Final = {"schema": SCHEMA_TABLES, "idle": 0, "large_rows": LARGE_ROWS}
"""Rows; else all of the mixed columns."""


class SourceRounds:
    """The measurements of one source; ``server_pid`` where its server runs here."""

    def __init__(
        self,
        source: str,
        *,
        server_pid: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._server_pid = server_pid
        self._environment = {**os.environ, **(environment or {})}

    def client(self, command: Sequence[str], **variables: str) -> Measured:
        """The peer: a client that throws its rows away."""
        cpu = children_cpu_seconds()
        started = time.perf_counter()
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**self._environment, **variables},
            timeout=MEASURE_SECONDS,
        )
        seconds = time.perf_counter() - started
        return {"rows": ROWS, "seconds": seconds, "cpu_seconds": children_cpu_seconds() - cpu}

    def ours(self, name: str) -> Measured:
        return self._process("benchmarks.source_measures", self._source, name, of=name)

    def usual(self) -> Measured:
        return self._process("benchmarks.usual", self._source, of="usual")

    def watched(self, run: Run) -> Measured:
        """The same, with the seconds of CPU that the server spent meanwhile."""
        before = server_cpu_seconds(self._server_pid)
        measured = run()
        after = server_cpu_seconds(self._server_pid)
        return measured if after is None else {**measured, "server": after - (before or 0.0)}

    def report(self, runs: Mapping[str, Sequence[Measured]], peer: str = "") -> None:
        """A line for each name of ``runs``; those with as many rows are compared with the peer."""
        for name, measured in runs.items():
            figure = {"figure": f"{self._source}.{name}", **medians(measured)}
            if peer and measured[0]["rows"] == ROWS:
                figure |= {"peer": f"{self._source}.{peer}", **paired(measured, runs[peer])}
            print(json.dumps(figure), flush=True)

    def _process(self, module: str, *arguments: str, of: str) -> Measured:
        answer = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            check=True,
            stdout=subprocess.PIPE,
            env=self._environment,
            timeout=MEASURE_SECONDS,
        )
        # what the product logs stands before it
        measured: Measured = json.loads(answer.stdout.splitlines()[-1])
        assert measured["rows"] == EXPECTED.get(of, ROWS), (of, measured)
        return measured


def rounds_of(description: str | None, *, rounds: int = 5) -> int:
    """``--rounds`` of the command line; other arguments belong to others."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    arguments, _ = parser.parse_known_args()
    return int(arguments.rounds)


def in_turns(
    named: Mapping[str, Run], rounds: int, *, few: Collection[str] = ()
) -> dict[str, list[Measured]]:
    """Each as often as there are rounds; of ``few`` only in the first two."""
    runs: dict[str, list[Measured]] = {name: [] for name in named}
    for number in range(rounds):
        for name, run in named.items():
            if number < FEW_ROUNDS or name not in few:
                runs[name].append(run())
    return runs


def medians(measured: Sequence[Measured]) -> Measured:
    """Of seconds and CPU; of what must never be large the largest."""
    seconds = statistics.median(run["seconds"] for run in measured)
    rows = measured[0]["rows"]
    figure: Measured = {
        "rows": rows,
        "seconds": round(seconds, 2),
        "all_seconds": [round(run["seconds"], 2) for run in measured],
        "cpu_seconds": round(statistics.median(run["cpu_seconds"] for run in measured), 2),
    }
    if rows == ROWS:
        figure["rows_per_second"] = round(rows / seconds)
    if "server" in measured[0]:
        shares = [run["server"] / run["seconds"] for run in measured]
        figure["server_cpu_seconds"] = round(statistics.median(r["server"] for r in measured), 2)
        figure["server_cores"] = round(statistics.median(shares), 2)
    if "peak_mib" in measured[0]:
        figure["peak_mib"] = max(run["peak_mib"] for run in measured)
    if "peak_before_mib" in measured[0]:
        figure["loop_late_ms"] = [run["loop_late_ms"] for run in measured]
        growth = [run["peak_mib"] - run["peak_before_mib"] for run in measured]
        figure["peak_growth_mib"] = max(growth)
    return figure


def paired(measured: Sequence[Measured], peer: Sequence[Measured]) -> Measured:
    """How many times as fast as the peer of its round each run was."""
    ratios = [other["seconds"] / run["seconds"] for other, run in zip(peer, measured, strict=False)]
    return {
        "ratio_to_peer": round(statistics.median(ratios), 2),
        "all_ratios": [round(ratio, 2) for ratio in ratios],
    }
