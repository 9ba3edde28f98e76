"""The real command as a process, for end-to-end tests."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers.waiting import DeadlineMissedError, eventually_sync

# What a child gets of this process's environment; everything else would make runs differ.
INHERITED = ("PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SYSTEMROOT")
LOG_TAIL_BYTES = 8_000
REQUEST_SECONDS = 2.0


class ProcessEndedError(AssertionError):
    """The process ended while a test still needed it; the text has the end of its log."""


class FetcherProcess:
    """One running command. Made by :func:`fetcher_process`, which always kills it at the end.

    Every wait is blocking and bounded. An async test that serves something the process needs
    puts the wait in a thread: ``await trio.to_thread.run_sync(partial(process.wait_exit, ...))``.
    """

    def __init__(self, child: "subprocess.Popen[bytes]", *, log: Path, output: Path) -> None:
        self._child = child
        self.log_path = log
        self.output_path = output

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs, ``-n`` when signal ``n`` ended it."""
        return self._child.poll()

    def log(self) -> str:
        """Everything it wrote so far: to standard error, then its records."""
        paths = (self.log_path, self.output_path)
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)

    def send(self, signal_number: signal.Signals) -> None:
        """Signal the process alone, not its children. One that has ended ignores it."""
        self._child.send_signal(signal_number)

    def wait_until(
        self, condition: Callable[["FetcherProcess"], bool], *, deadline_seconds: float
    ) -> None:
        """Wait for a condition on the running process.

        Raises:
            ProcessEndedError: it ended first.
            DeadlineMissedError: the condition stayed false.
        """

        def holds_or_ended() -> bool:
            return condition(self) or self.exit_code is not None

        try:
            eventually_sync(holds_or_ended, deadline_seconds=deadline_seconds)
        except DeadlineMissedError as missed:
            text = f"{missed}\n{self._tail()}"
        else:
            if condition(self):
                return
            message = f"it ended with {self.exit_code}\n{self._tail()}"
            raise ProcessEndedError(message)
        raise DeadlineMissedError(text)

    def wait_until_answers(self, url: str, *, deadline_seconds: float, status: int = 200) -> None:
        """Wait until ``GET url`` has the status. Errors as :meth:`wait_until`."""
        self.wait_until(lambda _: http_status(url) == status, deadline_seconds=deadline_seconds)

    def wait_exit(self, *, deadline_seconds: float) -> int:
        """Its exit code.

        Raises:
            DeadlineMissedError: it still runs after ``deadline_seconds``.
        """
        try:
            return self._child.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            text = f"process {self.pid} still runs after {deadline_seconds:g} s\n{self._tail()}"
        raise DeadlineMissedError(text)

    def kill(self) -> None:
        """End it and everything it started, at once, and wait for its end. May be repeated."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def _tail(self) -> str:
        return f"--- end of {self.log_path.name} ---\n{self.log()[-LOG_TAIL_BYTES:]}"


@contextmanager
def fetcher_process(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, name: str = "fetcher"
) -> Iterator[FetcherProcess]:
    """Run ``python -m fetcher <arguments>`` in ``folder`` until the block ends.

    It sees the given environment and nothing of ours but the path, has its own home and session,
    an empty stdin, and writes to ``<name>.out`` and ``<name>.log`` in the folder. It may end
    earlier; whatever is left of it and its children at the end of the block is killed.
    """
    command = [sys.executable, "-m", "fetcher", *arguments]
    with running(command, environment=environment, folder=folder, name=name) as process:
        yield process


@contextmanager
def running(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, name: str
) -> Iterator[FetcherProcess]:
    """As :func:`fetcher_process`, for any command."""
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    own = {"HOME": str(folder), "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    log, output = folder / f"{name}.log", folder / f"{name}.out"
    with log.open("ab") as log_file, output.open("ab") as output_file:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=inherited | own | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output_file,
            stderr=log_file,
            start_new_session=True,
        )
    process = FetcherProcess(child, log=log, output=output)
    try:
        yield process
    finally:
        process.kill()


def http_status(url: str) -> int | None:
    """The status of ``GET url``, or ``None`` when no answer came within 2 s."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=REQUEST_SECONDS)
    with closing(connection):
        try:
            connection.request("GET", f"{parts.path or '/'}?{parts.query}".rstrip("?"))
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None


_handed_out: set[int] = set()


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago, each time another one: whoever
    asks for two is about to listen on both."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _handed_out:
            _handed_out.add(port)
            return port
