"""One tenant in this process: whether it is wanted, its tries, who waits for it.

One task an entry, and one entry a tenant until that task has ended: no tenant runs twice.
"""

from typing import Final, Generic, TypeAlias

import structlog
import trio

from fetcher.actors.channels import Reply
from fetcher.actors.contained import found_in, told_of
from fetcher.actors.tenancy.parts import TenantParts
from fetcher.actors.tenancy.run import REQUEST_SECONDS, TenantEndedEarly
from fetcher.actors.tenancy.running import TenantT
from fetcher.actors.tenancy.session import TenantSession
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import TenantError
from fetcher.ports import TenantState, TenantStateName

log = structlog.get_logger(__name__)

RETRY_BASE_SECONDS: Final = 5.0
RETRY_CAP_SECONDS: Final = 40.0
DEGRADED_FROM: Final = 3
"""Failures in a row (spec worker-and-events 9.3)."""
STEADY_SECONDS: Final = 60.0
"""A tenant that held this long starts the back-off anew."""

TenantReply: TypeAlias = Reply[TenantT | TenantError | PortUnavailable]


class TenantEntry(Generic[TenantT]):
    """:meth:`run` is its one task; the other methods tell it something and never wait."""

    def __init__(
        self, tenant_id: str, parts: TenantParts[TenantT], *, after_seconds: float = 0.0
    ) -> None:
        self.tenant_id = tenant_id
        self.absent_passes = 0
        """How many lists in a row have not named it."""
        self._parts = parts
        self._is_wanted = True
        self._fresh = False
        self._wait_seconds = after_seconds
        self._told = trio.Event()
        self._replies: list[TenantReply[TenantT]] = []
        self._session: TenantSession[TenantT] | None = None
        self._failures = 0
        self._refusal: PortUnavailable | None = None
        """What is said while the next try is waited for."""
        self._last_failure: str | None = None

    @property
    def is_wanted(self) -> bool:
        return self._is_wanted

    @property
    def idle_seconds(self) -> float:
        """For how long no request has used it: 0 where it is not open."""
        usable = self._usable
        return 0.0 if usable is None else usable.uses.idle_seconds()

    def state(self) -> TenantState:
        usable, session = self._usable, self._session
        name: TenantStateName
        if usable is not None:
            name = "open"
        elif session is None:
            name = "waiting"
        else:
            name = "stopping" if session.is_leaving else "opening"
        return TenantState(
            tenant_id=self.tenant_id,
            state=name,
            uses=0 if usable is None else usable.uses.count,
            failures=self._failures,
            last_failure=self._last_failure,
        )

    def want(self, reply: TenantReply[TenantT]) -> None:
        """Somebody waits for it: open it out of turn, and without a wait."""
        usable = self._usable
        if usable is not None:
            reply.set(usable)
            return
        if self._refusal is not None and self._is_wanted:
            reply.set(self._refusal)
            return
        self._replies.append(reply)
        self.start()
        self._told.set()
        if self._session is not None:
            self._session.hurry()

    def start(self, *, after_seconds: float = 0.0) -> None:
        """Let it run, again where it is about to end. Nothing where it does already."""
        if not self._is_wanted:
            self._is_wanted = True
            self._wait_seconds = after_seconds
            self.absent_passes = 0

    def hasten(self, *, after_seconds: float) -> None:
        """Something has changed for the better: the wait after a failure is over that soon."""
        if self._refusal is not None:
            self._refusal = None
            self._wait_seconds = after_seconds
            self._told.set()

    def renew(self, *, after_seconds: float) -> None:
        """Open it with what the Tenant Manager says after a wait. One that is open goes on until
        then: its jobs may take long to end, and requests would have to wait for that."""
        if self._session is not None and self._session.usable is not None:
            self._session.renew()
            return
        self._is_wanted = True
        self._fresh = True
        self._wait_seconds = after_seconds
        self._end_session(REQUEST_SECONDS)

    def stop(self, *, request_seconds: float = REQUEST_SECONDS) -> None:
        self._is_wanted = False
        self._end_session(request_seconds)

    def drain(self) -> None:
        """Let its actors end; requests go on."""
        if self._session is not None:
            self._session.drain()

    def touch(self) -> None:
        """It is used, also where no request does so."""
        if self._session is not None:
            self._session.touch()

    def look(self) -> None:
        """Something may have changed unheard."""
        if self._session is not None:
            self._session.look()

    async def run(self) -> None:
        """Until it is not wanted any more, or has no business here. Raises nothing but
        cancellation."""
        try:
            while self._is_wanted:
                await self._pause()
                if self._is_wanted:
                    await self._try()
        finally:
            self._refuse(PortUnavailable("the tenant was stopped"))

    @property
    def _usable(self) -> TenantT | None:
        return None if self._session is None else self._session.usable

    def _end_session(self, request_seconds: float) -> None:
        self._failures = 0
        self._refusal = None
        self._told.set()
        if self._session is not None:
            self._session.stop(request_seconds=request_seconds)

    async def _pause(self) -> None:
        """As long as was told last, and not at all while somebody waits."""
        while self._wait_seconds > 0 and self._is_wanted and not self._replies:
            seconds, self._wait_seconds = self._wait_seconds, 0.0
            self._told = trio.Event()
            with trio.move_on_after(seconds):
                await self._told.wait()
        self._wait_seconds = 0.0
        self._refusal = None

    async def _try(self) -> None:
        fresh, self._fresh = self._fresh, False
        session = self._session = TenantSession(
            self.tenant_id, self._parts, fresh=fresh, opened=self._answer
        )
        if self._replies:
            session.hurry()
        failure = await session.run()
        self._session = None
        if failure is None:
            return
        if session.was_stopped:
            log.warning("tenant_ended_badly", tenant_id=self.tenant_id, **_told_of(failure))
            return
        if session.open_seconds > STEADY_SECONDS:
            self._failures = 0
        word = found_in(failure, TenantError)
        if word is not None:
            self._give_up(word)
        else:
            self._meet(failure, has_opened=session.has_opened)

    def _give_up(self, word: TenantError) -> None:
        """The Tenant Manager's word: another try would not help."""
        log.warning("tenant_refused", tenant_id=self.tenant_id, code=word.code, why=str(word))
        self._parts.metrics.refused.labels(code=word.code).inc()
        self._parts.directory.forget(self.tenant_id)
        self._is_wanted = False
        self._refuse(word)

    def _meet(self, failure: Exception, *, has_opened: bool) -> None:
        self._tell(failure)
        known = found_in(failure, PortUnavailable)
        refusal = known.with_traceback(None) if known else PortUnavailable("the tenant failed")
        self._refuse(refusal)
        if not (self._parts.discovers or has_opened):
            # Whoever needs it next tries it.
            self._is_wanted = False
            return
        self._fresh = True
        self._refusal = refusal
        self._wait_seconds = full_jitter(
            self._failures - 1, base_seconds=RETRY_BASE_SECONDS, cap_seconds=RETRY_CAP_SECONDS
        )

    def _tell(self, failure: Exception) -> None:
        self._failures += 1
        self._parts.metrics.failures.inc()
        told = _told_of(failure)
        self._last_failure = str(told["code"])
        name = "tenant_degraded" if self._failures >= DEGRADED_FROM else "tenant_failed"
        log.warning(name, tenant_id=self.tenant_id, failures=self._failures, **told)

    def _answer(self, tenant: TenantT) -> None:
        log.info("tenant_opened", tenant_id=self.tenant_id)
        for reply in self._replies:
            reply.set(tenant)
        self._replies.clear()

    def _refuse(self, why: TenantError | PortUnavailable) -> None:
        for reply in self._replies:
            reply.set(why)
        self._replies.clear()


def _told_of(failure: Exception) -> dict[str, object]:
    """What a log may say of it."""
    ended = found_in(failure, TenantEndedEarly)
    if ended is not None:
        return {"code": "ended_early", "why": str(ended)}
    return told_of(failure)
