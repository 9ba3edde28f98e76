"""How often the stores and the broker are looked at, by whoever works on one tenant's jobs."""

import random
from dataclasses import dataclass
from typing import Final

from fetcher.actors.dispatcher import STALE_CHECK_SECONDS
from fetcher.actors.sampler import SAMPLE_SECONDS
from fetcher.settings import Settings

TENANT_SWEEP_SECONDS: Final = 15.0
"""Of the sweeps by which a job of a worker that is gone is claimed again: one finds that its lease
ran out, and where the hint of that was dropped another one dispatches it. Both take half a minute
together, so the promise holds (lease + 30 s)."""
TENANT_SLOW_SECONDS: Final = 60.0
TENANT_STALE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTimes:
    dispatch_seconds: float
    stale_check_seconds: float
    reap_seconds: float
    tidy_seconds: float
    repair_seconds: float
    sample_seconds: float
    is_spread: bool
    """Many start at once, and must not all look at once."""

    def first_after(self, seconds: float) -> float:
        """When what is done every so many seconds is done first."""
        return random.uniform(0.0, seconds) if self.is_spread else 0.0  # noqa: S311 - no secret


def sweep_times(settings: Settings) -> SweepTimes:
    """With tenants an idle one is looked at a third as often, and takes 0.6 ms of a core a second
    with all its looks (``python -m benchmarks.tenants``)."""
    sweeps = TENANT_SWEEP_SECONDS if settings.multi_tenant_enabled else 0.0
    slow = TENANT_SLOW_SECONDS if settings.multi_tenant_enabled else 0.0
    stale = TENANT_STALE_SECONDS if settings.multi_tenant_enabled else 0.0
    return SweepTimes(
        dispatch_seconds=max(settings.job_dispatch_sweep_sec, sweeps),
        stale_check_seconds=max(STALE_CHECK_SECONDS, stale),
        reap_seconds=max(settings.job_reap_sec, sweeps),
        tidy_seconds=max(settings.job_reap_sec, slow),
        repair_seconds=settings.outbox_repair_sec,
        sample_seconds=max(SAMPLE_SECONDS, slow),
        is_spread=settings.multi_tenant_enabled,
    )
