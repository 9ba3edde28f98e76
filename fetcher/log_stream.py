"""Where log records are written to: a sink that fails or hangs costs records, never the process."""

import atexit
import os
import select
import stat
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Final, TextIO

MAX_WAITING_BYTES: Final = 1024 * 1024
"""Of records that a sink has not taken yet; those beyond are lost."""
IDLE_SECONDS: Final = 1.0
"""After so long without a record the thread ends; the next one starts another."""
EXIT_FLUSH_SECONDS: Final = 1.0
"""How long the end of the process waits for a sink that takes nothing."""


class LogStream:
    """A standard stream as far as printing records needs it. A full disk, or a reader that has
    gone or stopped reading, loses records but never fails or holds up whoever wrote one; how many
    is told as soon as it can be.

    Pipes, sockets and terminals can hang: a thread writes to those. Files are written at once.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._sink = _sink_of(stream)
        self._parts: list[str] = []
        self._lost = 0
        self._is_cut = False

    def write(self, text: str) -> int:
        if self._sink is not None:
            self._parts.append(text)
            return len(text)
        try:
            self._stream.write(text)
        except (OSError, ValueError):  # ValueError: closed, or no character of its encoding
            self._is_cut = True
        return len(text)

    def flush(self) -> None:
        """Called once a record."""
        if self._sink is not None:
            text, self._parts = "".join(self._parts), []
            self._sink.put(text, self._stream)
            return
        try:
            self._stream.flush()
            if self._lost and not self._is_cut:
                self._stream.write(_lost_line(self._lost))
                self._stream.flush()
                self._lost = 0
        except (OSError, ValueError):
            self._is_cut = True
        self._lost += self._is_cut
        self._is_cut = False


class _Sink:
    """A descriptor that may hang, and the one thread that writes to it, in order.

    It goes around the stream's own buffer: its lock would be held while the sink hangs, and the
    interpreter cannot end then.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_cut = False
        self.start_anew()

    def start_anew(self) -> None:
        """Also in a forked child: the thread and what waits for it are the parent's."""
        # Its lock may be taken again by its owner: a record may come out of a finaliser.
        self._changed = threading.Condition()
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._writer: threading.Thread | None = None

    def put(self, text: str, stream: TextIO) -> None:
        with self._changed:
            try:
                record = text.encode(stream.encoding or "utf-8", stream.errors or "strict")
            except ValueError:
                self._lost += 1
                return
            if self._waiting and self._waiting_bytes + len(record) > MAX_WAITING_BYTES:
                self._lost += 1
                return
            self._waiting.append((record, self._lost))
            self._lost = 0
            self._waiting_bytes += len(record)
            self._start_writer()
            self._changed.notify_all()

    def _start_writer(self) -> None:
        if self._writer is None:
            writer = threading.Thread(target=self._run, name="log writer", daemon=True)
            # No thread may be had just now: the next record tries again.
            with suppress(RuntimeError):
                writer.start()
                self._writer = writer

    def flush(self, seconds: float) -> None:
        """Wait until everything is written, at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, timeout=seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: bool(self._waiting), IDLE_SECONDS):
                    self._writer = None
                    return
                record, missed = self._waiting[0]
            lost = self._write(record, missed)
            with self._changed:
                self._lost += lost
                untold = self._lost if len(self._waiting) == 1 and not lost else 0
            if untold and self._is_written(_lost_line(untold).encode()):
                with self._changed:
                    self._lost -= untold
            with self._changed:
                # Only now: what is being written counts as waiting.
                self._waiting.popleft()
                self._waiting_bytes -= len(record)
                self._changed.notify_all()

    def _write(self, record: bytes, missed: int) -> int:
        """How many are lost, with those that were missed before this one and could not be told."""
        if missed and not self._is_written(_lost_line(missed).encode()):
            return missed + 1
        return 0 if self._is_written(record) else 1

    def _is_written(self, record: bytes) -> bool:
        rest = memoryview(b"\n" + record if self._is_cut else record)
        size = len(rest)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                # Its beginning may stand there: what comes next begins a line of its own.
                self._is_cut = self._is_cut or len(rest) < size
                return False
        self._is_cut = False
        return True


_sinks: dict[tuple[int, int, int], _Sink] = {}
"""By descriptor and what it stands for."""


def _sink_of(stream: TextIO) -> _Sink | None:
    """None for what is written at once: a file, or a stream that somebody has put in its place."""
    try:
        descriptor = stream.fileno()
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode):
            return None
        key = (descriptor, about.st_dev, about.st_ino)
        if key not in _sinks:
            stream.flush()
    except (OSError, ValueError, AttributeError):
        return None
    return _sinks.setdefault(key, _Sink(descriptor))


def flush_logs(seconds: float = EXIT_FLUSH_SECONDS) -> None:
    """Wait until all records are written, but for no longer; what cannot be written is lost."""
    end = time.monotonic() + seconds
    for sink in tuple(_sinks.values()):
        sink.flush(max(0.0, end - time.monotonic()))


def _start_anew() -> None:
    for sink in _sinks.values():
        sink.start_anew()


def _lost_line(count: int) -> str:
    return f'{{"level":"WARN","msg":"log_records_lost","n":{count}}}\n'


atexit.register(flush_logs)
os.register_at_fork(after_in_child=_start_anew)
