"""How much a worker holds while jobs run: measured the same way by tests and by ``make bench``."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.faults.memory_world import MemoryWorld, WatchedWorker
from tests.faults.own_sources import Kind
from tests.faults.sized_rows import SizedRows, fill

SIZES_MB: Final = [10, 32, 100, 320, 1000]
AT_ONCE_MB: Final = 200
MOST_MONGODB_MB: Final = 100
"""Of a larger collection the test server takes longer for a sample than a schema may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesMeasured:
    """The peaks of one worker's jobs, one after the other: ``peaks_mib`` by megabytes of result."""

    kind: Kind
    idle_mib: float
    peaks_mib: dict[int, float]
    row_bytes: int

    @property
    def growth_mib(self) -> float:
        return max(self.peaks_mib.values()) - self.idle_mib

    @property
    def ratio(self) -> float:
        """The largest peak to that of the smallest result."""
        return max(self.peaks_mib.values()) / next(iter(self.peaks_mib.values()))

    def line(self) -> dict[str, Any]:
        return {
            "figure": f"memory.{self.kind}",
            "idle_mib": round(self.idle_mib),
            "result_mb": list(self.peaks_mib),
            "peak_mib": [round(peak) for peak in self.peaks_mib.values()],
            "peak_growth_mib": round(self.growth_mib, 1),
            "ratio_to_smallest": round(self.ratio, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnceMeasured:
    jobs: int
    megabytes: int
    """Of each."""
    idle_mib: float
    peak_mib: float

    @property
    def growth_mib(self) -> float:
        return self.peak_mib - self.idle_mib

    def line(self) -> dict[str, Any]:
        return {
            "figure": "memory.at_once",
            "jobs": self.jobs,
            "result_mb": self.megabytes,
            "idle_mib": round(self.idle_mib),
            "peak_mib": round(self.peak_mib),
            "peak_growth_mib": round(self.growth_mib, 1),
        }


@contextmanager
def filled_sources(world: MemoryWorld, megabytes: int) -> Iterator[list[SizedRows]]:
    """One of each kind, and more, until they are as many as a worker has places."""
    with ExitStack() as stack:
        sources = [stack.enter_context(world.source(kind)) for kind in [*Kind, Kind.POSTGRESQL]]
        yield [fill(source, _at_most(source.kind, megabytes)) for source in sources]


def measure_sizes(
    world: MemoryWorld, worker: WatchedWorker, rows: SizedRows, sizes_mb: Sequence[int]
) -> SizesMeasured:
    """Results from the smallest to the largest, one after the other."""
    peaks = {}
    kind = rows.source.kind
    for megabytes in sizes_mb:
        if megabytes > _at_most(kind, megabytes):
            break
        [job], memory = worker.run(partial(rows.post_job, megabytes=megabytes))
        check_stored(world, job, megabytes)
        peaks[megabytes] = memory.peak_mib
    return SizesMeasured(
        kind=kind,
        idle_mib=worker.idle_mib,
        peaks_mib=peaks,
        row_bytes=rows.row_bytes,
    )


def measure_at_once(
    world: MemoryWorld, worker: WatchedWorker, sources: Sequence[SizedRows], megabytes: int
) -> AtOnceMeasured:
    """A job of each source."""
    sizes = [_at_most(rows.source.kind, megabytes) for rows in sources]
    jobs, memory = worker.run(
        *(partial(rows.post_job, megabytes=size) for rows, size in zip(sources, sizes, strict=True))
    )
    for job, size in zip(jobs, sizes, strict=True):
        check_stored(world, job, size)
    # all had begun before the first had ended
    assert max(job["startedAt"] for job in jobs) < min(job["completedAt"] for job in jobs)
    return AtOnceMeasured(
        jobs=len(jobs),
        megabytes=megabytes,
        idle_mib=worker.idle_mib,
        peak_mib=memory.peak_mib,
    )


def _at_most(kind: Kind, megabytes: int) -> int:
    return min(megabytes, MOST_MONGODB_MB) if kind is Kind.MONGODB else megabytes


def check_stored(world: MemoryWorld, job: Any, megabytes: int) -> None:
    """All rows came, and all of their sealed text."""
    assert job["status"] == "completed", job
    size = int(job["sizeBytes"])
    assert 0 <= size - megabytes * 1_000_000 < 100, job
    assert world.sink.size(job["resultPath"]) == 4 * -(-(size + 28) // 3)
