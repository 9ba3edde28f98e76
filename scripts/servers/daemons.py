"""Processes that outlive the command that started them, and how they are ended again."""

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

END_SECONDS = 30.0
LOG_TAIL_LINES = 20
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not on every user's path


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process that can't be mistaken for a later one of the same id."""

    pid: int
    started_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A server process that we started, as it is written down."""

    name: str
    process: Identity
    end_signal: int
    log: str


def identify(pid: int) -> Identity | None:
    """The live process of this id; ``None`` when there is none, or it is dead and unburied."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # the name in parentheses may hold anything; then state is field 3, the number of threads
    # field 20, start time field 22 (proc(5))
    fields = stat.rpartition(")")[2].split()
    # a dying process is a zombie already while its other threads still hold ports and files
    dead = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if dead else Identity(pid=pid, started_ticks=int(fields[19]))


def is_alive(process: Identity) -> bool:
    return identify(process.pid) == process


def descendants(process: Identity) -> list[Identity]:
    """Its children and theirs, whatever session they moved to."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found: list[Identity] = []
    waiting = [process.pid] if is_alive(process) else []
    while waiting:
        for pid in children.get(waiting.pop(), []):
            child = identify(pid)
            if child:
                found.append(child)
                waiting.append(pid)
    return found


def unprivileged_user(preferred: str) -> str | None:
    """Whom a server runs as: ourselves (``None``), or, for root, its own user or else nobody.

    PostgreSQL refuses to run as root, and the others have no need to.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(preferred).pw_name
    except KeyError:
        return "nobody"


def give_to(folder: Path, user: str | None) -> Path:
    """Make the folder, if it is not there, and give it to the user."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


class DaemonError(Exception):
    """A server did not start or a step before it failed; the text has the end of its log."""


def start(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    folder: Path,
    user: str | None = None,
    environment: Mapping[str, str] | None = None,
    end_signal: signal.Signals = signal.SIGTERM,
) -> Daemon:
    """Start a server in a session of its own, its output in ``log``, its home in ``folder``.

    Raises:
        DaemonError: the command can't be run.
    """
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(folder, environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                group=_group(user),
                extra_groups=None if user is None else [],
            )
    except OSError as failure:
        message = f"{name}: {command[0]} can't be run ({failure})"
        raise DaemonError(message) from None
    process = identify(child.pid) or Identity(pid=child.pid, started_ticks=-1)
    child.returncode = 0  # let go of on purpose: it is to outlive us, without a warning
    return Daemon(name=name, process=process, end_signal=end_signal, log=str(log))


def run_step(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    folder: Path,
    deadline_seconds: float,
    user: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a command to its end, its output in ``log``.

    Raises:
        DaemonError: it failed or took longer than the deadline (it is killed then).
    """
    try:
        with log.open("ab") as output:
            code = subprocess.run(
                command,
                cwd=folder,
                env=_environment(folder, environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=deadline_seconds,
                check=False,
                user=user,
                group=_group(user),
                extra_groups=None if user is None else [],
            ).returncode
    except subprocess.TimeoutExpired:
        reason = f"took longer than {deadline_seconds:g} s"
    except OSError as failure:
        reason = f"can't be run ({failure})"
    else:
        if code == 0:
            return
        reason = f"failed with {code}"
    message = f"{name}: {command[0]} {reason}\n{tail(log)}"
    raise DaemonError(message)


def wait_ready(
    daemon: Daemon, admits: Callable[[], str | None], *, deadline_seconds: float
) -> None:
    """Wait until ``admits`` gives ``None``, the sign of an answer; else it gives the reason.

    Raises:
        DaemonError: the server ended, or did not answer in time.
    """
    give_up_at = time.monotonic() + deadline_seconds
    while (reason := admits()) is not None:
        if not is_alive(daemon.process):
            message = f"{daemon.name}: the server ended while starting\n{tail(Path(daemon.log))}"
            raise DaemonError(message)
        if time.monotonic() >= give_up_at:
            message = (
                f"{daemon.name}: not ready after {deadline_seconds:g} s: {reason}\n"
                f"{tail(Path(daemon.log))}"
            )
            raise DaemonError(message)
        time.sleep(0.1)


def stop(daemons: Sequence[Daemon], *, deadline_seconds: float = END_SECONDS) -> list[str]:
    """End the servers and everything they started, and wait until nothing of it is left.

    Gives the names of those that had to be killed because they outstayed the deadline.
    """
    families = [[daemon.process, *descendants(daemon.process)] for daemon in daemons]
    processes = [process for family in families for process in family]
    for daemon in daemons:
        _signal(daemon.process, daemon.end_signal)
    _await_end(processes, deadline_seconds)
    late = [
        daemon.name
        for daemon, family in zip(daemons, families, strict=True)
        if any(map(is_alive, family))
    ]
    for process in processes:
        _signal(process, signal.SIGKILL)
    _await_end(processes, deadline_seconds)
    return late


def tail(log: Path) -> str:
    """The last lines of a log, under a heading."""
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = "\n".join(f"  | {line}" for line in text.splitlines()[-LOG_TAIL_LINES:])
    return f"  end of {log}:\n{lines or '  | (empty)'}"


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(folder: Path, more: Mapping[str, str] | None) -> dict[str, str]:
    # nothing of the caller's but the path: a stray PGDATA or RABBITMQ_* must not steer a server
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    return {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC", **(more or {})}


def _group(user: str | None) -> int | None:
    return None if user is None else pwd.getpwnam(user).pw_gid


def _signal(process: Identity, number: int) -> None:
    if is_alive(process):
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _await_end(processes: Sequence[Identity], deadline_seconds: float) -> None:
    give_up_at = time.monotonic() + deadline_seconds
    waiting = [process for process in processes if not _has_ended(process)]
    while waiting and time.monotonic() < give_up_at:
        time.sleep(0.05)
        waiting = [process for process in waiting if not _has_ended(process)]


def _has_ended(process: Identity) -> bool:
    """Whether it is gone; one of our own children is buried by this."""
    try:
        buried, _ = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:  # it is ours only when this very command started it
        return not is_alive(process)
    return buried == process.pid
