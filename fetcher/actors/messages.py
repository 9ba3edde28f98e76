"""What actors say to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic

from fetcher.actors.channels import Reply
from fetcher.actors.tenancy.running import TenantT
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Lease
from fetcher.domain.jobs import Job
from fetcher.domain.tenants import TenantError
from fetcher.domain.trace_context import TraceContext
from fetcher.ports import ProbeResult


@dataclass(frozen=True, slots=True)
class DispatchHint:
    """A job waits to be dispatched. May be dropped: the sweep finds it."""

    job_id: JobId
    held: "HeldJob | None" = None
    """The job itself, where nobody else may dispatch it for a while."""


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that nobody else dispatches; to be sent before ``until``, on trio's clock."""

    job: Job
    until: float


@dataclass(frozen=True, slots=True)
class RelayHint:
    """A job's terminal event waits to be published. May be dropped: the repairer finds it."""

    job_id: JobId


@dataclass(frozen=True, slots=True)
class StoreAway:
    """Claims get no answer from the record store. May be dropped: one is enough."""


class Settlement(StrEnum):
    """What becomes of the delivery that brought a job."""

    ACK = "ack"
    REJECT_UNKNOWN = "reject_unknown"
    REJECT_UNREADABLE = "reject_unreadable"
    REQUEUE = "requeue"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOrder:
    """One delivery's job for a free extractor."""

    job_id: JobId
    request_id: str
    trace: TraceContext | None = None
    """Of the message that brought it."""
    reply: Reply[Settlement] = field(default_factory=Reply, repr=False)


class LeaseLoss(StrEnum):
    """Why an attempt must stop."""

    CANCEL_REQUESTED = "cancel_requested"
    SUPERSEDED = "superseded"
    """Another attempt has the job, or it has ended."""
    UNRENEWED = "unrenewed"
    """The record store did not answer in time: the lease may be somebody else's by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStarted:
    """An attempt begins: keep its lease, and answer when it is lost.

    ``asked_at`` is our monotonic time before the claim was asked for: the store's answer may have
    taken long, and its lease counts from before that.
    """

    lease: Lease
    asked_at: float
    lost: Reply[LeaseLoss] = field(default_factory=Reply, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    lease: Lease


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """Run every probe now."""

    reply: Reply[Mapping[str, ProbeResult]] = field(default_factory=Reply, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The state behind ``/health`` and ``/readyz``. ``checks`` is None unless it was asked for."""

    self_probe_passed: bool
    draining: bool
    checks: Mapping[str, ProbeResult] | None = None


@dataclass(frozen=True, slots=True)
class HealthQuestion:
    """With ``probe``, every probe runs for this answer (never while draining)."""

    probe: bool
    reply: Reply[HealthReport] = field(default_factory=Reply, repr=False)


# Without slots: a generic one with them cannot be made as `TenantWanted[T](…)` on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class TenantWanted(Generic[TenantT]):
    """Somebody needs this tenant: open it if it is not.

    Answered with the running tenant, or with why there is none, to be raised by whoever asked: the
    Tenant Manager's word on it (TenantError), or what may pass (PortUnavailable). All who wait for
    the same tenant share one opening.
    """

    tenant_id: str
    reply: Reply[TenantT | TenantError | PortUnavailable] = field(default_factory=Reply, repr=False)
