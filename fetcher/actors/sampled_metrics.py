"""Gauges of what stores and brokers were asked for: the process shows all its tenants in one."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from fetcher.domain.job_store import ActiveJobs, EventBacklog

STATES: Final = ("undispatched", "dispatched", "parked", "processing")


@dataclass(slots=True, eq=False)
class SampledShare:
    """What one tenant's stores and broker answered last; None: nothing yet."""

    jobs: ActiveJobs | None = None
    events: EventBacklog | None = None
    breakers_open: int | None = None
    queue_ready: int | None = None


@dataclass(slots=True, eq=False)
class DeadLetterShare:
    """One tenant's dead letters. NaN: not counted yet; an age that nothing tells."""

    messages: float = math.nan
    oldest_seconds: float = math.nan


class SampledMetrics:
    """What a store or the broker was asked for lately: the same in every process that reaches them,
    so read it with ``max``. Counts are sums over the shares, ages those of the oldest."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._shares: tuple[SampledShare, ...] = ()
        self.failures = Counter(
            "fetcher_sample_failures",
            "Questions for the sampled gauges that were not answered.",
            ["what"],
            registry=registry,
        )
        active_jobs = Gauge(
            "fetcher_active_jobs",
            "Jobs by state: undispatched, dispatched, parked, processing.",
            ["state"],
            registry=registry,
        )
        for state in STATES:
            active_jobs.labels(state=state).set_function(self._sum(self._jobs, state))

        def gauge(name: str, meaning: str, value: Callable[[], float]) -> None:
            Gauge(name, meaning, registry=registry).set_function(value)

        gauge(
            "fetcher_undispatched_oldest_seconds",
            "Since when the oldest due job waits for its message to be sent.",
            self._oldest(self._jobs, "oldest_undispatched_seconds"),
        )
        gauge(
            "fetcher_dispatched_oldest_seconds",
            "Since when the oldest sent message waits for a worker.",
            self._oldest(self._jobs, "oldest_dispatched_seconds"),
        )
        gauge(
            "fetcher_queue_ready_messages",
            "Messages of the work queue that no worker holds.",
            lambda: sum(share.queue_ready or 0 for share in self._shares),
        )
        gauge(
            "fetcher_outbox_pending",
            "Terminal events not yet published.",
            self._sum(self._events, "pending"),
        )
        gauge(
            "fetcher_outbox_oldest_seconds",
            "Age of the oldest unpublished terminal event.",
            self._oldest(self._events, "oldest_seconds"),
        )
        gauge(
            "fetcher_events_unroutable",
            "Unpublished terminal events that no queue took when they were tried last.",
            self._sum(self._events, "unroutable"),
        )
        gauge(
            "fetcher_connection_breakers_open",
            "Connections that are left alone because they are down.",
            lambda: sum(share.breakers_open or 0 for share in self._shares),
        )
        self.disk_free = Gauge(
            "fetcher_disk_free_bytes",
            "Free bytes where the data folder (data) and the spool (spool) lie.",
            ["place"],
            registry=registry,
        )
        self.disk_size = Gauge(
            "fetcher_disk_size_bytes", "Size of that disk.", ["place"], registry=registry
        )

    def share(self) -> SampledShare:
        """A share that counts from now on, until it is given to :meth:`forget`."""
        share = SampledShare()
        self._shares = (*self._shares, share)
        return share

    def forget(self, share: SampledShare) -> None:
        """Its tenant has stopped."""
        self._shares = tuple(each for each in self._shares if each is not share)

    def _jobs(self) -> Iterable[ActiveJobs]:
        return [share.jobs for share in self._shares if share.jobs is not None]

    def _events(self) -> Iterable[EventBacklog]:
        return [share.events for share in self._shares if share.events is not None]

    @staticmethod
    def _sum(answers: Callable[[], Iterable[object]], member: str) -> Callable[[], float]:
        value = attrgetter(member)
        return lambda: float(sum(map(value, answers())))

    @staticmethod
    def _oldest(answers: Callable[[], Iterable[object]], member: str) -> Callable[[], float]:
        value = attrgetter(member)
        return lambda: float(max(map(value, answers()), default=0.0))


class DeadLetterMetrics:
    """As SampledMetrics; what nobody knows yet is NaN, and does not hide what others know."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._shares: tuple[DeadLetterShare, ...] = ()
        Gauge(
            "fetcher_dlq_messages",
            "Dead letters that nobody holds, as counted once a minute.",
            registry=registry,
        ).set_function(lambda: _known(sum, [share.messages for share in self._shares]))
        Gauge(
            "fetcher_dlq_fullest_messages",
            "The same of the one queue that has the most: each tenant has its own.",
            registry=registry,
        ).set_function(lambda: _known(max, [share.messages for share in self._shares]))
        Gauge(
            "fetcher_dlq_oldest_message_age_seconds",
            "Age of the oldest dead letter: 0 where there is none, NaN where nothing tells.",
            registry=registry,
        ).set_function(lambda: _known(max, [share.oldest_seconds for share in self._shares]))

    def share(self) -> DeadLetterShare:
        """A share that counts from now on, until it is given to :meth:`forget`."""
        share = DeadLetterShare()
        self._shares = (*self._shares, share)
        return share

    def forget(self, share: DeadLetterShare) -> None:
        """Its tenant has stopped."""
        self._shares = tuple(each for each in self._shares if each is not share)


def _known(combined: Callable[[Iterable[float]], float], values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return combined(known) if known else math.nan
