"""Asks the stores and the broker for what the gauges show, so that no scrape has to."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias

import structlog
import trio

from fetcher.actors.sampled_metrics import SampledMetrics, SampledShare
from fetcher.domain.errors import PortError
from fetcher.ports import RecordStore, WorkBacklog

log = structlog.get_logger(__name__)

SAMPLE_SECONDS = 15.0
ANSWER_SECONDS = 10.0
"""Deadline of one question."""

Sample: TypeAlias = Callable[[], Awaitable[None]]
"""Asks one question and sets its gauges. Raises PortError."""


class Sampler:
    """Now and again all questions side by side. One that fails leaves its gauges as they were, is
    counted, and is told in the log when it fails for the first time and when it is answered again.

    The first time is after ``first_after_seconds``: many that start at once need not ask at once.
    """

    name = "sampler"

    def __init__(
        self,
        samples: Mapping[str, Sample],
        *,
        metrics: SampledMetrics,
        sample_seconds: float = SAMPLE_SECONDS,
        first_after_seconds: float = 0.0,
    ) -> None:
        self._samples = samples
        self._metrics = metrics
        self._sample_seconds = sample_seconds
        self._first_after_seconds = first_after_seconds
        self._failing: set[str] = set()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep(self._first_after_seconds)
        while True:
            async with trio.open_nursery() as nursery:
                for what, sample in self._samples.items():
                    nursery.start_soon(self._take, what, sample)
            await trio.sleep(self._sample_seconds)

    async def _take(self, what: str, sample: Sample) -> None:
        try:
            with trio.fail_after(ANSWER_SECONDS):
                await sample()
        except (PortError, trio.TooSlowError) as failure:
            code = failure.code if isinstance(failure, PortError) else "timed_out"
            self._metrics.failures.labels(what=what).inc()
            if what not in self._failing:
                log.warning("sample_failed", what=what, code=code)
            self._failing.add(what)
            return
        if what in self._failing:
            log.info("sample_answered", what=what)
        self._failing.discard(what)


def store_samples(
    records: RecordStore, backlog: WorkBacklog, share: SampledShare
) -> dict[str, Sample]:
    return {
        "jobs": partial(_sample_jobs, records, share),
        "events": partial(_sample_events, records, share),
        "breakers": partial(_sample_breakers, records, share),
        "queue": partial(_sample_queue, backlog, share),
    }


async def _sample_jobs(records: RecordStore, share: SampledShare) -> None:
    share.jobs = await records.dispatch.active_jobs()


async def _sample_events(records: RecordStore, share: SampledShare) -> None:
    share.events = await records.events.backlog()


async def _sample_breakers(records: RecordStore, share: SampledShare) -> None:
    share.breakers_open = await records.breakers.count_open()


async def _sample_queue(backlog: WorkBacklog, share: SampledShare) -> None:
    share.queue_ready = await backlog.ready_count()
