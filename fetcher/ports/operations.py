"""What operators look at: a process's own state, queues, and counts over records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from fetcher.domain.activity import EndedMinute
from fetcher.domain.jobs import JobStatus
from fetcher.ports.sources import ProbeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """Which process it is that tells of itself."""

    host: str
    pid: int
    role: str
    version: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedMinute:
    """What the probes of one dependency said in one minute."""

    minute: datetime
    """Its beginning."""
    probes: int
    failures: int
    """Those that were down or degraded."""
    slowest_ms: int
    error: str | None = None
    """The last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDependency:
    name: str
    last: ProbeResult
    probed_at: datetime
    minutes: Sequence[ProbedMinute]
    """Of the last hour, the oldest first; minutes without a probe are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorState:
    name: str
    state: str
    """``running``, ``restarting``, ``ended``, or ``gave_up``."""
    restarts: int
    last_crash: str | None = None
    """Its type: no text of it, which may hold anything."""
    last_crash_at: datetime | None = None


TenantStateName: TypeAlias = Literal["opening", "open", "stopping", "waiting"]
"""``waiting``: for its next try, or for a wait to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """How one tenant is in this process."""

    tenant_id: str
    state: TenantStateName
    uses: int
    """Requests that use it now."""
    failures: int
    """In a row."""
    last_failure: str | None = None
    """Its code or type: no text of it, which may hold anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepth:
    """``ready`` is None for a queue that is not there; ``consumers`` where nobody can tell."""

    name: str
    purpose: str
    ready: int | None
    consumers: int | None = None


class QueueDepths(Protocol):
    async def depths(self) -> Sequence[QueueDepth]:
        """The work queue, then the dead letters."""
        ...


class JobStatistics(Protocol):
    """Numbers over the job records. However many jobs there are, an answer is small."""

    async def count_by_status(self) -> Mapping[JobStatus, int]:
        """Every status, also where there is none of it. Each count stops at
        :data:`fetcher.domain.job_store.MOST_COUNTED`."""
        ...

    async def ended_by_minute(self, *, since: datetime) -> Sequence[EndedMinute]:
        """Jobs that ended at ``since`` or later, by minute and then state; minutes in which none
        ended are left out."""
        ...
