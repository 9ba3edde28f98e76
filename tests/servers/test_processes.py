import os
import signal
import sys
from pathlib import Path

import pytest

from tests.servers.processes import (
    FetcherProcess,
    ProcessEndedError,
    fetcher_process,
    free_port,
    http_status,
    running,
)
from tests.servers.waiting import DeadlineMissedError, eventually_sync

READY = "import sys, time; print('ready', file=sys.stderr, flush=True); "
SLEEPS = READY + "time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
PARENT = (
    "import subprocess, sys; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "print(child.pid, flush=True); " + SLEEPS
)


def is_ready(process: FetcherProcess) -> bool:
    return "ready" in process.log()


def exists(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_signal_ends_it_and_its_exit_code_is_told(tmp_path: Path) -> None:
    with running(python(SLEEPS), environment={}, folder=tmp_path, name="p") as process:
        process.wait_until(is_ready, deadline_seconds=20)
        assert process.exit_code is None
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=20) == -signal.SIGTERM


def test_one_that_ignores_the_signal_is_reported_and_killed_at_the_end(tmp_path: Path) -> None:
    with running(python(STUBBORN), environment={}, folder=tmp_path, name="p") as process:
        process.wait_until(is_ready, deadline_seconds=20)
        process.send(signal.SIGTERM)
        with pytest.raises(DeadlineMissedError, match="ready"):
            process.wait_exit(deadline_seconds=0.05)
    assert process.exit_code == -signal.SIGKILL


def test_children_are_killed_with_it_even_when_the_test_fails(tmp_path: Path) -> None:
    class TestFailedError(Exception):
        pass

    def failing_test() -> None:
        with running(python(PARENT), environment={}, folder=tmp_path, name="p") as process:
            process.wait_until(is_ready, deadline_seconds=20)
            assert exists(int(process.output_path.read_text()))
            raise TestFailedError

    with pytest.raises(TestFailedError):
        failing_test()
    grandchild = int((tmp_path / "p.out").read_text())
    eventually_sync(lambda: not exists(grandchild), deadline_seconds=5)


def test_one_that_ends_too_early_is_reported_with_its_log(tmp_path: Path) -> None:
    code = "import sys; sys.exit('port in use')"
    with (
        running(python(code), environment={}, folder=tmp_path, name="p") as process,
        pytest.raises(ProcessEndedError, match=r"ended with 1\n.*p\.log.*\nport in use"),
    ):
        process.wait_until_answers("http://127.0.0.1:9/", deadline_seconds=20)


def test_it_sees_only_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCHER_LEAKED", "1")
    code = "import os; print(sorted(os.environ.items()), os.getcwd())"
    with running(python(code), environment={"A": "b"}, folder=tmp_path, name="p") as process:
        assert process.wait_exit(deadline_seconds=20) == 0
    seen = process.output_path.read_text()
    assert "('A', 'b')" in seen
    assert "FETCHER_LEAKED" not in seen
    assert f"('HOME', '{tmp_path}')" in seen
    assert seen.rstrip().endswith(str(tmp_path))


def test_it_answers_once_it_listens(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}/"
    assert http_status(url) is None
    with running(command, environment={}, folder=tmp_path, name="p") as process:
        process.wait_until_answers(url, deadline_seconds=20)
        process.wait_until_answers(url + "none", status=404, deadline_seconds=20)
        assert process.pid != os.getpid()


def test_the_command_is_fetcher(tmp_path: Path) -> None:
    with fetcher_process(["--no-such-option"], environment={}, folder=tmp_path) as process:
        assert process.wait_exit(deadline_seconds=60) == 2
    assert "--no-such-option" in process.log() + process.output_path.read_text()
