"""Whether one tenant's own dependencies are there (spec configuration 7).

Anybody may ask, without a token. So an id that can be nobody's is answered as an unknown one, the
list of tenants is remembered for five seconds and asked for by one at a time, and few tenants are
looked at at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import trio

from fetcher.domain.errors import PortError
from fetcher.domain.probe_text import safe_error_text
from fetcher.domain.tenants import TenantsLeftAlone, is_tenant_id
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.ports.tenants import TenantDirectory
from fetcher.queries.probing import timed_probe

LIST_SECONDS: Final = 1.0
REMEMBERED_SECONDS: Final = 5.0
AT_ONCE: Final = 4

_LEFT_ALONE: Final = ProbeResult(
    status=ProbeStatus.DOWN, error="circuit breaker open", breaker_state="open"
)


class Found(StrEnum):
    """What became of the question."""

    CHECKED = "checked"
    DRAINING = "draining"
    """Nothing was looked at: the process serves nobody for long any more."""
    NO_ID = "no_id"
    UNKNOWN = "unknown"
    """No tenant that uses this service has the id."""
    UNTOLD = "untold"
    """It could not be found out now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantReadiness:
    """``error`` is safe to show; ``checks`` are there where the tenant was looked at."""

    found: Found
    error: str = ""
    checks: Mapping[str, ProbeResult] = field(default_factory=dict)


class LookAtTenant:
    """Answers within the list's limit and the longest deadline of a probe; raises nothing."""

    def __init__(
        self,
        *,
        directory: TenantDirectory,
        probes: Callable[[str], Sequence[Probe]],
        is_draining: Callable[[], bool],
    ) -> None:
        """``probes`` are those of an active tenant; their checks may raise PortError, which is an
        entry that is down."""
        self._list = _ActiveTenants(directory)
        self._probes = probes
        self._is_draining = is_draining
        self._looks = 0

    async def __call__(self, tenant_id: str) -> TenantReadiness:
        if self._is_draining():
            return TenantReadiness(found=Found.DRAINING)
        if not tenant_id:
            return TenantReadiness(found=Found.NO_ID, error="tenant id required")
        return await self._not_active(tenant_id) or await self._checked(tenant_id)

    async def _not_active(self, tenant_id: str) -> TenantReadiness | None:
        if not is_tenant_id(tenant_id):
            return _UNKNOWN
        active = await self._list.now()
        if active.failure:
            return TenantReadiness(found=Found.UNTOLD, error=active.failure)
        return None if tenant_id in active.ids else _UNKNOWN

    async def _checked(self, tenant_id: str) -> TenantReadiness:
        if self._looks >= AT_ONCE:
            return TenantReadiness(found=Found.UNTOLD, error="too many tenant probes")
        self._looks += 1
        try:
            return TenantReadiness(found=Found.CHECKED, checks=await self._look(tenant_id))
        finally:
            self._looks -= 1

    async def _look(self, tenant_id: str) -> Mapping[str, ProbeResult]:
        checks: dict[str, ProbeResult] = {}

        async def run(probe: Probe) -> None:
            checks[probe.name] = await _result_of(probe)

        async with trio.open_nursery() as nursery:
            for probe in self._probes(tenant_id):
                nursery.start_soon(run, probe)
        return checks


_UNKNOWN: Final = TenantReadiness(found=Found.UNKNOWN, error="tenant not found")


async def _result_of(probe: Probe) -> ProbeResult:
    """Whether a tenant's place speaks TLS is nobody's business who only knows its id."""
    try:
        return replace(await timed_probe(probe), tls=None)
    except TenantsLeftAlone:
        return _LEFT_ALONE
    except PortError as error:
        return ProbeResult(status=ProbeStatus.DOWN, error=safe_error_text(str(error)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    ids: frozenset[str] = frozenset()
    failure: str = ""
    came_at: float


class _ActiveTenants:
    """The Tenant Manager's list, asked for by one at a time: those that come meanwhile get the same
    answer, a failure too."""

    def __init__(self, directory: TenantDirectory) -> None:
        self._directory = directory
        self._turn = trio.Lock()
        self._last: _Answer | None = None

    async def now(self) -> _Answer:
        came_at = trio.current_time()
        async with self._turn:
            last = self._last
            if last is not None and (last.came_at >= came_at or _is_fresh(last)):
                return last
            self._last = await self._ask()
            return self._last

    async def _ask(self) -> _Answer:
        failure, ids = "", frozenset[str]()
        began = trio.current_time()
        try:
            ids = frozenset(await self._directory.active(within_seconds=LIST_SECONDS))
        except TenantsLeftAlone:
            failure = "tenant manager circuit breaker open"
        except PortError as error:
            # Whoever watches looks for this word, however the failure is told elsewhere.
            is_late = trio.current_time() - began >= LIST_SECONDS
            why = "timeout" if is_late else safe_error_text(str(error))
            failure = f"tenant manager unreachable: {why}"
        return _Answer(ids=ids, failure=failure, came_at=trio.current_time())


def _is_fresh(answer: _Answer) -> bool:
    return not answer.failure and trio.current_time() - answer.came_at < REMEMBERED_SECONDS
