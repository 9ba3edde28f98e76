import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.servers import daemons
from scripts.servers.daemons import Daemon, DaemonError
from tests.servers.waiting import eventually_sync

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
PARENT_OF_A_STRAY = (
    "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
    "'import time; time.sleep(600)'], start_new_session=True); " + SLEEPS
)


def a_daemon(folder: Path, code: str = SLEEPS) -> Daemon:
    """One that has said that it is up."""
    log = folder / "log"
    daemon = daemons.start("it", [sys.executable, "-c", code], log=log, folder=folder)
    eventually_sync(lambda: "up" in log.read_text(), deadline_seconds=20)
    return daemon


def test_a_daemon_is_stopped_by_its_signal(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path)
    assert daemons.is_alive(daemon.process)
    assert os.getsid(daemon.process.pid) == daemon.process.pid
    assert daemons.stop([daemon]) == []
    assert not daemons.is_alive(daemon.process)


def test_of_two_with_one_name_both_are_stopped(tmp_path: Path) -> None:
    pair = [a_daemon(tmp_path), a_daemon(tmp_path)]
    assert daemons.stop(pair) == []
    assert not any(daemons.is_alive(daemon.process) for daemon in pair)


def test_one_that_ignores_its_signal_is_killed_and_named(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path, STUBBORN)
    assert daemons.stop([daemon], deadline_seconds=0.1) == ["it"]
    assert not daemons.is_alive(daemon.process)


def test_what_it_started_in_another_session_ends_with_it(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path, PARENT_OF_A_STRAY)
    (stray,) = daemons.descendants(daemon.process)
    assert os.getsid(stray.pid) == stray.pid
    assert daemons.stop([daemon], deadline_seconds=0.1) == ["it"]
    assert not daemons.is_alive(stray)


def test_another_process_of_the_same_id_is_left_alone(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path)
    earlier = replace(daemon.process, started_ticks=daemon.process.started_ticks - 1)
    assert daemons.stop([replace(daemon, process=earlier)], deadline_seconds=0.1) == []
    assert daemons.is_alive(daemon.process)
    daemons.stop([daemon])


def test_a_dead_process_that_nobody_waited_for_is_not_alive(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path)
    os.kill(daemon.process.pid, signal.SIGKILL)
    eventually_sync(lambda: not daemons.is_alive(daemon.process), deadline_seconds=20)
    assert Path(f"/proc/{daemon.process.pid}").exists()
    daemons.stop([daemon])


def test_a_daemon_sees_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    code = "import os; print(os.environ.get('PGDATA'), os.environ['HOME'], 'up', flush=True)"
    daemons.stop([a_daemon(tmp_path, code)])
    assert (tmp_path / "log").read_text() == f"None {tmp_path} up\n"


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(DaemonError, match=r"^it: /no/such can't be run"):
        daemons.start("it", ["/no/such"], log=tmp_path / "log", folder=tmp_path)


def test_a_server_that_ends_while_starting_is_told_with_its_log(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path, "print('up'); raise SystemExit('no space left')")
    with pytest.raises(DaemonError, match=r"(?s)ended while starting.*\| no space left"):
        daemons.wait_ready(daemon, lambda: "no answer", deadline_seconds=20)
    daemons.stop([daemon])


def test_a_server_that_never_answers_is_told_with_the_reason(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path)
    with pytest.raises(DaemonError, match=r"(?s)not ready after 0 s: no answer.*\| up"):
        daemons.wait_ready(daemon, lambda: "no answer", deadline_seconds=0)
    daemons.stop([daemon])


def test_a_step_that_fails_is_told_with_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('locale missing')"]
    with pytest.raises(DaemonError, match=r"(?s)failed with 1.*\| locale missing"):
        daemons.run_step("it", command, log=tmp_path / "log", folder=tmp_path, deadline_seconds=20)


def test_a_step_that_hangs_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLEEPS]
    with pytest.raises(DaemonError, match=r"took longer than 0.05 s"):
        daemons.run_step(
            "it", command, log=tmp_path / "log", folder=tmp_path, deadline_seconds=0.05
        )


def test_a_log_is_told_by_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert daemons.tail(log).endswith("| (empty)")
    log.write_text("".join(f"line {n}\n" for n in range(100)))
    told = daemons.tail(log).splitlines()
    assert (told[1], told[-1], len(told)) == ("  | line 80", "  | line 99", 21)


def test_ourselves_are_used_unless_we_are_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert daemons.unprivileged_user("root") is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert daemons.unprivileged_user("daemon") == "daemon"
    assert daemons.unprivileged_user("no-such-user-here") == "nobody"
