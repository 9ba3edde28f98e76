"""The connections that a job reads from, as its attempt begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import trio

from fetcher.commands.job_failures import (
    failure_of_unconfigured,
    failure_of_wait,
    waiting_reason,
)
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.source_breakers import SourceBreakers, SourceWait
from fetcher.domain.backoff import full_jitter
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.internal_sources import InternalSourceMissing
from fetcher.domain.jobs import FailureFacts, Job, Parking
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.times import cut_to_milliseconds
from fetcher_engine import TenantContext

STORE_SECONDS = 120.0
"""How long the connections' records may be away while leases are still renewed."""
_UNREADABLE = FailureFacts(message="the connections cannot be read", code=PortUnavailable.code)


class JobFailed(Exception):
    """The attempt ends here, for a reason that may be shown."""

    def __init__(self, failure: FailureFacts) -> None:
        super().__init__(failure.message)
        self.failure = failure


class JobParked(Exception):
    """The attempt ends here, without having opened a source."""

    def __init__(self, parking: Parking) -> None:
        super().__init__(parking.reason)
        self.parking = parking


@dataclass(frozen=True, slots=True)
class OpenableSources:
    """Connections by config name, and those of them of which a breaker has heard something."""

    connections: Sequence[Connection]
    failed_lately: Sequence[Connection]


class JobSources:
    """Found, of the job's product, and not left alone for being down."""

    def __init__(
        self,
        *,
        resolve: ResolveSources,
        breakers: SourceBreakers,
        max_wait_seconds: float,
        tenant: Tenant = NO_TENANT,
    ) -> None:
        """``max_wait_seconds``: for how long after its first claim a job waits for a connection."""
        self._resolve = resolve
        self._breakers = breakers
        self._max_wait_seconds = max_wait_seconds
        self._tenant = TenantContext.new(tenant.engine_id)

    async def __call__(self, job: Job) -> OpenableSources:
        """Raise JobFailed or JobParked."""
        names = sorted(job.mapped_fields)
        found = await self._find(names)
        missing = sorted(set(names) - {c.config_name for c in found})
        if missing:
            listed = ", ".join(missing)
            raise JobFailed(
                FailureFacts(message=f"no connection is configured for {listed}", code="not_found")
            )
        foreign = [
            c for c in found if not c.is_internal and c.product_name.lower() != job.product_name
        ]
        if foreign:
            name = foreign[0].config_name
            raise JobFailed(
                FailureFacts(
                    message=f"{name}: the connection belongs to another product",
                    code="forbidden",
                    source=name,
                )
            )
        look = await self._breakers.look(found, tenant=self._tenant)
        if look.wait is not None:
            raise self._held_back(job, look.wait)
        return OpenableSources(found, look.failed_lately)

    def _held_back(self, job: Job, wait: SourceWait) -> JobFailed | JobParked:
        since = job.started_at or wait.asked_at
        last = since + timedelta(seconds=self._max_wait_seconds)
        if last <= wait.asked_at:
            return JobFailed(failure_of_wait(wait))
        until = cut_to_milliseconds(min(wait.until, last))
        return JobParked(Parking(until=until, reason=waiting_reason(wait)))

    async def _find(self, names: Sequence[str]) -> list[Connection]:
        """An outage is waited out: it ends the attempt by its lease, and must not fail the job."""
        failure, tries = _UNREADABLE, 0
        with trio.move_on_after(STORE_SECONDS):
            while failure is _UNREADABLE:
                try:
                    return await self._resolve(names)
                except PortUnavailable:
                    await trio.sleep(full_jitter(tries, base_seconds=0.5, cap_seconds=8.0))
                    tries += 1
                except PortError as error:
                    failure = replace(_UNREADABLE, code=error.code)
                except InternalSourceMissing as missing:
                    failure = failure_of_unconfigured(missing)
        raise JobFailed(failure)
