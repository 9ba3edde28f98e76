"""The benchmarks run what the product is: a job over recorded batches, and the usual way."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.mongodb_replay import PORT_VARIABLE, replaying

ROWS = 9_000
"""Two whole batches and a part of one."""

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("module", "arguments", "rows"),
    [
        ("benchmarks.source_measures", ["mongodb", "sealed_to_folder"], ROWS),
        ("benchmarks.source_measures", ["mongodb", "connector"], ROWS),
        ("benchmarks.source_measures", ["mongodb", "large_rows"], 16),
        ("benchmarks.usual", ["mongodb"], ROWS),
    ],
)
def test_every_recorded_row_comes(
    module: str, arguments: list[str], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHER_BENCH_ROWS", str(ROWS))
    monkeypatch.setenv("FETCHER_BENCH_LARGE_ROWS", "16")
    with replaying() as (port, _):
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, PORT_VARIABLE: str(port)},
            stdout=subprocess.PIPE,
            check=True,
            timeout=120,
        )
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["rows"] == rows
    assert measured["seconds"] > 0
    assert measured["peak_mib"] > 0
