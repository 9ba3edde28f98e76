"""What a process knows of itself, read at each scrape: plain attributes, never a question."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fetcher.actors.lifecycle import Lifecycle
from fetcher.adapters.breaker import BreakerState
from fetcher.adapters.local.spool import FolderSpool
from fetcher.settings import Role

Labels: TypeAlias = tuple[str, ...]

BREAKER_VALUES: Mapping[BreakerState, float] = {
    BreakerState.CLOSED: 0,
    BreakerState.HALF_OPEN: 0.5,
    BreakerState.OPEN: 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFamily:
    name: str
    meaning: str
    read: Callable[[], Mapping[Labels, float]]
    """By the values of its labels."""
    labels: Labels = ()
    counts: bool = False

    def collect(self) -> Metric:
        family: CounterMetricFamily | GaugeMetricFamily
        kind = CounterMetricFamily if self.counts else GaugeMetricFamily
        family = kind(self.name, self.meaning, labels=self.labels)
        for labels, value in self.read().items():
            family.add_metric(labels, value)
        return family


class LiveMetrics:
    """A collector of the registry."""

    def __init__(self, families: Iterable[LiveFamily]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            yield family.collect()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFigures:
    """What is read at a scrape; parts that a process does not have are None, or no function."""

    hints_dropped: Callable[[], Mapping[str, int]]
    """By channel."""
    session_use: Callable[[], tuple[int, int]]
    """Sessions to sources: in use, and idle."""
    broker_breakers: Callable[[], Mapping[str, BreakerState]] | None = None
    """By part."""
    store_connections: Callable[[], tuple[int, int]] | None = None
    """Connections to the record store's server: open, and in use."""
    spool: FolderSpool | None = None
    tenants: Callable[[], Mapping[str, int]] | None = None
    """How many there are, by state."""
    tenant_manager_left_alone: Callable[[], bool] | None = None
    """Whether its circuit breaker is open."""


def live_metrics(
    figures: LiveFigures, *, version: str, role: Role, lifecycle: Lifecycle
) -> LiveMetrics:
    """What this process can tell: families of parts that it does not have are absent."""
    families = [
        LiveFamily(
            name="fetcher_build_info",
            meaning="1, with version and role.",
            labels=("version", "role"),
            read=lambda: {(version, role.value): 1},
        ),
        LiveFamily(
            name="fetcher_draining",
            meaning="1 from the signal to the end of the process.",
            read=lambda: {(): lifecycle.draining.is_set()},
        ),
        _hints(figures.hints_dropped),
        _sessions(figures.session_use),
    ]
    if figures.broker_breakers is not None:
        families.append(_broker_breakers(figures.broker_breakers))
    if figures.store_connections is not None:
        families.append(_store_connections(figures.store_connections))
    if figures.tenants is not None:
        families.append(_tenants(figures.tenants))
    if figures.tenant_manager_left_alone is not None:
        families.append(_tenant_manager(figures.tenant_manager_left_alone))
    if figures.spool is not None:
        families += _spool(figures.spool)
    return LiveMetrics(families)


def _hints(dropped: Callable[[], Mapping[str, int]]) -> LiveFamily:
    return LiveFamily(
        name="fetcher_hints_dropped",
        meaning="Hints that found their channel full: the next sweep finds what they told of.",
        labels=("channel",),
        read=lambda: {(channel,): count for channel, count in dropped().items()},
        counts=True,
    )


def _sessions(use: Callable[[], tuple[int, int]]) -> LiveFamily:
    def read() -> Mapping[Labels, float]:
        in_use, idle = use()
        return {("in_use",): in_use, ("idle",): idle}

    return LiveFamily(
        name="fetcher_source_sessions",
        meaning="Sessions to sources: in_use, idle (they wait for the next job).",
        labels=("state",),
        read=read,
    )


def _broker_breakers(states: Callable[[], Mapping[str, BreakerState]]) -> LiveFamily:
    return LiveFamily(
        name="fetcher_broker_breaker_state",
        meaning="0 closed, 0.5 half-open, 1 open: work, events, dead_letters.",
        labels=("part",),
        read=lambda: {(part,): BREAKER_VALUES[state] for part, state in states().items()},
    )


def _store_connections(use: Callable[[], tuple[int, int]]) -> LiveFamily:
    def read() -> Mapping[Labels, float]:
        opened, in_use = use()
        return {("open",): opened, ("in_use",): in_use}

    return LiveFamily(
        name="fetcher_store_connections",
        meaning="Connections to MongoDB: open, and of these in_use.",
        labels=("state",),
        read=read,
    )


def _tenants(counted: Callable[[], Mapping[str, int]]) -> LiveFamily:
    return LiveFamily(
        name="fetcher_tenants",
        meaning="Tenants that this process knows of: opening, open, stopping, waiting.",
        labels=("state",),
        read=lambda: {(state,): count for state, count in counted().items()},
    )


def _tenant_manager(is_left_alone: Callable[[], bool]) -> LiveFamily:
    return LiveFamily(
        name="fetcher_tenant_manager_left_alone",
        meaning="1 while the Tenant Manager is not asked, since it failed so often, else 0.",
        read=lambda: {(): is_left_alone()},
    )


def _spool(spool: FolderSpool) -> list[LiveFamily]:
    use = spool.use
    return [
        LiveFamily(
            name="fetcher_spool_bytes",
            meaning="Bytes on disk that wait for their turn in a result.",
            read=lambda: {(): use.bytes},
        ),
        LiveFamily(
            name="fetcher_spool_failures",
            meaning="Uses of the spool that failed: its source waited instead.",
            read=lambda: {(): use.failures},
            counts=True,
        ),
    ]
