"""A service whose log nobody reads goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fetcher.cli.demo_server import free_port
from tests.servers.processes import http_status
from tests.servers.waiting import eventually_sync

pytestmark = pytest.mark.e2e

DEADLINE_SECONDS = 30.0
REQUESTS = 400
"""Some hundred bytes each: several times what a pipe holds."""


def started(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SERVER_ADDRESS": f"127.0.0.1:{port}",
        "FETCHER_DATA_DIR": str(folder / "data"),
        "LOG_LEVEL": "debug",
        "READYZ_DRAIN_DELAY_SEC": "0.2",
        "SHUTDOWN_JOB_WAIT_SEC": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "fetcher", "--role=all"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize("signals", [1, 2])
def test_it_answers_and_ends_while_nobody_reads_its_log(tmp_path: Path, signals: int) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started(tmp_path, port) as process:
        try:
            eventually_sync(lambda: http_status(f"{url}/readyz") == 200, deadline_seconds=60)
            for _ in range(REQUESTS):
                assert http_status(f"{url}/v1/management/connections?limit=-1") == 400
            assert http_status(f"{url}/readyz") == 200
            for _ in range(signals):
                process.send_signal(signal.SIGTERM)
            code = process.wait(DEADLINE_SECONDS)
            assert code == 0 or (signals == 2 and code == 128 + signal.SIGTERM)
            assert process.stdout is not None
            assert len(process.stdout.read()) > 60_000, "the pipe was full"
        finally:
            process.kill()
