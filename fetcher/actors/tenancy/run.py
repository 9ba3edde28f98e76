"""One opening of a tenant: from its configuration to the moment when all of it is closed."""

import math
from typing import Final, Generic

import structlog
import trio

from fetcher.actors.contained import failure_of
from fetcher.actors.tenancy.parts import LoadConfig, OpenTenant
from fetcher.actors.tenancy.running import RunningTenant, TenantT
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import TenantConfig

log = structlog.get_logger(__name__)

OPEN_SECONDS: Final = 60.0
"""From asking for its configuration until it is open."""
BEYOND_JOBS_SECONDS: Final = 30.0
"""After the wait for jobs its own supervisor gives their release and the last round 10 s each."""
REQUEST_SECONDS: Final = 5.0
"""How long requests may go on when a tenant is stopped."""
CUT_SECONDS: Final = 2.0
"""How long those may take to end that were told to."""


class TenantEndedEarly(Exception):
    """Its actors have ended although nobody told them to; the text is ours and says of crashes
    their types only."""


class TenantRun(Generic[TenantT]):
    """:meth:`live` is its one task; the other methods tell it something and never wait.

    It opens once :meth:`open` was called and runs its actors once :meth:`begin` was: the actors of
    another opening of the same tenant may have to end first, while requests already come here.
    """

    def __init__(
        self,
        tenant_id: str,
        load: LoadConfig,
        open_tenant: OpenTenant[TenantT],
        *,
        job_wait_seconds: float,
    ) -> None:
        self.tenant_id = tenant_id
        self.config: TenantConfig | None = None
        self.tenant: TenantT | None = None
        """Set once it is open; stays set."""
        self.failure: Exception | None = None
        """Why it did not open, or ended untold."""
        self.settled = trio.Event()
        """It is open, or will never be."""
        self.ended = trio.Event()
        """Nothing of it is left."""
        self._load = load
        self._open_tenant = open_tenant
        self._run_stop_seconds = job_wait_seconds + BEYOND_JOBS_SECONDS
        self._may_open = trio.Event()
        self._may_run = trio.Event()
        self._drain = trio.Event()
        self._leave = trio.Event()
        self._run_ended = trio.Event()
        self._opening = trio.CancelScope()
        self._running = trio.CancelScope()
        self._request_seconds = REQUEST_SECONDS

    @property
    def usable(self) -> TenantT | None:
        """The tenant, while requests may enter it."""
        tenant = self.tenant
        return None if tenant is None or tenant.uses.is_closed else tenant

    @property
    def is_leaving(self) -> bool:
        return self._leave.is_set()

    def open(self) -> None:
        self._may_open.set()

    def begin(self) -> None:
        self._may_run.set()

    def drain(self) -> None:
        """Let its actors end; requests go on."""
        self._drain.set()

    def stop(self, *, request_seconds: float = REQUEST_SECONDS) -> None:
        """End it: at once where it is not open yet or does not run, else in an orderly way."""
        self._request_seconds = request_seconds
        self._leave.set()
        self._drain.set()
        if self.tenant is None:
            self._opening.cancel()
        else:
            self.tenant.uses.close()
        if not self._may_run.is_set():
            self._running.cancel()

    async def live(self) -> None:
        """Open, run, close. Raises nothing but cancellation, which closes at once."""
        try:
            failure = await failure_of(self._open_and_serve)
            self.failure = self.failure or failure
        finally:
            if self.tenant is not None:
                _shut(self.tenant)
            self.settled.set()
            self.ended.set()

    async def _open_and_serve(self) -> None:
        # The scope is around the whole life, since the context may hold nurseries that the end of
        # a narrower one would cut through. It has a deadline only while the tenant opens.
        with self._opening:
            await self._may_open.wait()
            self._opening.deadline = trio.current_time() + OPEN_SECONDS
            self.config = await self._load()
            async with self._open_tenant(self.config) as tenant:
                self._opening.deadline = math.inf
                self.tenant = tenant
                self.settled.set()
                await self._serve(tenant)
        if self._opening.cancelled_caught and not self._leave.is_set():
            raise PortUnavailable("the tenant did not open in time: timeout")

    async def _serve(self, tenant: TenantT) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_requests, tenant)
                nursery.start_soon(self._end_run, tenant)
                await self._run(tenant)
        finally:
            _shut(tenant)

    async def _run(self, tenant: TenantT) -> None:
        with self._running:
            await self._may_run.wait()
            self.failure = await failure_of(tenant.run)
        self._run_ended.set()
        if self.failure is None and tenant.lifecycle.failure is not None:
            self.failure = TenantEndedEarly(tenant.lifecycle.failure)
        if self.failure is None and not self._drain.is_set():
            self.failure = TenantEndedEarly("its actors ended")
        if self.failure is not None:
            self._drain.set()
            self._leave.set()

    async def _end_run(self, tenant: TenantT) -> None:
        await self._drain.wait()
        tenant.lifecycle.drain()
        with trio.move_on_after(self._run_stop_seconds):
            await self._run_ended.wait()
            return
        log.warning("tenant_cut_off", tenant_id=self.tenant_id, seconds=self._run_stop_seconds)
        self._running.cancel()

    async def _end_requests(self, tenant: TenantT) -> None:
        await self._leave.wait()
        tenant.uses.close()
        with trio.move_on_after(self._request_seconds):
            await tenant.uses.until_unused()
        tenant.cut.set()
        with trio.move_on_after(CUT_SECONDS):
            await tenant.uses.until_unused()


def _shut(tenant: RunningTenant) -> None:
    tenant.uses.close()
    tenant.cut.set()
