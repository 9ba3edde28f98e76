"""What a test must not leave behind: child processes and busy threads."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.waiting import DeadlineMissedError, eventually_sync

GRACE_SECONDS = 5.0

# trio keeps idle worker threads for 10 s under this name; a thread at work is named after its work.
IDLE_TRIO_THREAD = "Trio thread "


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Child processes by id, and threads by identity."""

    processes: frozenset[int]
    threads: frozenset[threading.Thread]

    def __bool__(self) -> bool:
        return bool(self.processes or self.threads)

    def since(self, earlier: "Leftovers") -> "Leftovers":
        return Leftovers(self.processes - earlier.processes, self.threads - earlier.threads)

    def describe(self) -> str:
        names = [f"process {pid} ({_command_line(pid)})" for pid in sorted(self.processes)]
        names += [f"thread {thread.name!r}" for thread in self.threads]
        return ", ".join(names)


def current() -> Leftovers:
    """This process's children (also dead ones that nobody waited for) and threads, idle ones of
    trio's cache apart."""
    threads = frozenset(
        thread for thread in threading.enumerate() if not thread.name.startswith(IDLE_TRIO_THREAD)
    )
    return Leftovers(frozenset(_children()), threads)


def _children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:  # the thread has just ended
            continue
    return found


def _command_line(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "gone"
    return raw.replace(b"\0", b" ").decode(errors="replace").strip() or "not waited for"


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fail a test that leaves a child process or a busy thread, after 5 s to let them end.

    What fixtures of a wider scope started before the test is theirs and doesn't count.
    """
    before = current()
    yield
    try:
        eventually_sync(lambda: not current().since(before), deadline_seconds=GRACE_SECONDS)
    except DeadlineMissedError:
        left = current().since(before)
    else:
        return
    if left:
        pytest.fail(f"the test left behind: {left.describe()}", pytrace=False)
