"""What a process holds, as the kernel tells it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MIB: Final = 1024 * 1024
SAMPLE_SECONDS: Final = 0.05


@dataclass(slots=True)
class MemoryWatched:
    """``samples_mib`` every 50 ms while the block ran, ``peak_mib`` from the kernel at its end."""

    samples_mib: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def sampled_later_mib(self, share: float) -> float:
        """The most that was sampled after so much of the time."""
        return max(self.samples_mib[int(len(self.samples_mib) * share) :])


def resident_mib(pid: int) -> float:
    return _status_mib(pid, "VmRSS")


@contextmanager
def watched(pid: int) -> Iterator[MemoryWatched]:
    """The peak counts from the block's beginning."""
    memory = MemoryWatched()
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            memory.samples_mib.append(resident_mib(pid))

    # proc(5): 5 sets the peak to what is resident now
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    memory.samples_mib.append(resident_mib(pid))
    sampler = threading.Thread(target=sample, name=f"memory of {pid}")
    sampler.start()
    try:
        yield memory
    finally:
        ended.set()
        sampler.join()
    memory.peak_mib = _status_mib(pid, "VmHWM")


def _status_mib(pid: int, name: str) -> float:
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        if line.startswith(f"{name}:")
    ]
    return int(line.split()[1]) / 1024
