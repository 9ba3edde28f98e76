"""A tenant from its opening to its end, over changes of its configuration (spec 11.5 and 11.7)."""

import random
from collections.abc import Callable
from typing import Final, Generic

import structlog
import trio

from fetcher.actors.contained import failure_of, found_in, told_of
from fetcher.actors.tenancy.parts import LoadConfig, TenantParts
from fetcher.actors.tenancy.run import REQUEST_SECONDS, TenantRun
from fetcher.actors.tenancy.running import TenantT
from fetcher.domain.tenants import (
    TenantConfig,
    TenantError,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)

log = structlog.get_logger(__name__)

TURN_SECONDS: Final = 5.0
"""A tenant that opens for longer lets the next one begin: it may take very long."""
LOOK_SECONDS: Final = 5.0
"""Deadline of the question whether a configuration has changed."""
SPREAD_SECONDS: Final = 5.0
"""Many tenants are to be looked at after one and the same loss of their events."""


class TenantSession(Generic[TenantT]):
    """:meth:`run` is its one task; the other methods tell it something and never wait.

    While it is used, its configuration is read anew, 30 to 36 s after it was last. A tenant that is
    suspended or gone by then ends. Another configuration is opened first; requests go there at
    once, its actors begin when those before have ended; so it is where it is to be renewed. What
    fails on the way leaves all as it was: an outage of the Tenant Manager, or a refusal for all
    tenants alike, stops nobody.

    ``fresh``: what is remembered of it counts only where the Tenant Manager does not answer.
    """

    def __init__(
        self,
        tenant_id: str,
        parts: TenantParts[TenantT],
        *,
        fresh: bool,
        opened: Callable[[TenantT], None],
    ) -> None:
        self._tenant_id = tenant_id
        self._parts = parts
        self._fresh = fresh
        self._opened = opened
        self._current = self._new_run(self._load)
        self._look = trio.Event()
        self._is_stale = False
        self._read_config: TenantConfig
        self._opened_at: float | None = None
        self._looked_at = self._touched_at = trio.current_time()
        self._gone: TenantError | None = None
        self.was_stopped = False
        """Whether its owner has told it to end: what fails from then on is no news."""

    @property
    def usable(self) -> TenantT | None:
        """The tenant, while requests may enter it."""
        return self._current.usable

    @property
    def has_opened(self) -> bool:
        return self._opened_at is not None

    @property
    def open_seconds(self) -> float:
        """Since it was opened for the first time; 0 where it is not yet."""
        return 0.0 if self._opened_at is None else trio.current_time() - self._opened_at

    @property
    def is_leaving(self) -> bool:
        return self._current.is_leaving

    def hurry(self) -> None:
        """Somebody waits: open it out of turn."""
        self._current.open()

    def stop(self, *, request_seconds: float = REQUEST_SECONDS) -> None:
        self.was_stopped = True
        self._current.stop(request_seconds=request_seconds)

    def drain(self) -> None:
        """Let its actors end; requests go on."""
        self._current.drain()

    def touch(self) -> None:
        """It is used, also where no request does so."""
        self._touched_at = trio.current_time()

    def look(self) -> None:
        """Something may have changed unheard: read its configuration soon."""
        self._look.set()

    def renew(self) -> None:
        """Open it anew soon, also where its configuration says what it said before. Until that is
        done it goes on as it is, and is looked at whether it is used or not."""
        self._is_stale = True
        self.look()

    async def run(self) -> Exception | None:
        """What ended it, the Tenant Manager's word included; None after a stop. Raises nothing but
        cancellation."""
        async with trio.open_nursery() as nursery:
            run = self._current
            nursery.start_soon(run.live)
            nursery.start_soon(self._take_turn, run)
            await run.settled.wait()
            if run.tenant is not None:
                with self._parts.metrics.active.track_inprogress():
                    self._tell_opened(run, run.tenant)
                    run.begin()
                    nursery.start_soon(self._watch, nursery)
                    run = await self._until_the_last_ends(run)
            await run.ended.wait()
            nursery.cancel_scope.cancel()
        return self._gone or run.failure

    async def _until_the_last_ends(self, run: TenantRun[TenantT]) -> TenantRun[TenantT]:
        await run.ended.wait()
        while self._current is not run:
            run = self._current
            run.begin()
            await run.ended.wait()
        return run

    async def _take_turn(self, run: TenantRun[TenantT]) -> None:
        async with self._parts.turns:
            run.open()
            with trio.move_on_after(TURN_SECONDS):
                await run.settled.wait()

    async def _load(self) -> TenantConfig:
        directory = self._parts.directory
        if self._fresh:
            try:
                return await directory.config(self._tenant_id, fresh=True)
            except TenantsUnavailable:
                # What is remembered may be what is wrong, and is better than nothing.
                log.debug("tenant_opens_by_memory", tenant_id=self._tenant_id)
        return await directory.config(self._tenant_id)

    async def _watch(self, nursery: trio.Nursery) -> None:
        while True:
            await self._until_due()
            self._looked_at = trio.current_time()
            # Whoever tells of one more meanwhile means what is to be read after that.
            was_stale, self._is_stale = self._is_stale, False
            failure = await failure_of(self._read)
            if failure is None:
                if was_stale or self._read_config != self._current.config:
                    has_opened = await self._follow(self._read_config, nursery)
                    self._is_stale |= was_stale and not has_opened
                continue
            self._is_stale |= was_stale
            self._gone = found_in(failure, TenantUnknown) or found_in(failure, TenantSuspended)
            if self._gone is not None:
                self._current.stop()
                return
            level = log.warning if was_stale else log.debug
            level("tenant_not_looked_at", tenant_id=self._tenant_id, **told_of(failure))

    async def _read(self) -> None:
        with trio.fail_after(LOOK_SECONDS):
            self._read_config = await self._parts.directory.config(self._tenant_id, fresh=True)

    async def _until_due(self) -> None:
        # A random part, or all tenants that were opened together would be looked at together.
        wait_seconds = self._parts.times.revalidate_seconds * random.uniform(1, 1.2)  # noqa: S311 - spread
        while True:
            with trio.move_on_after(wait_seconds):
                await self._look.wait()
            if self._look.is_set():
                self._look = trio.Event()
                await trio.sleep(random.uniform(0, SPREAD_SECONDS))  # noqa: S311 - no secret
                return
            if self._is_stale or self._was_used():
                return

    def _was_used(self) -> bool:
        usable = self.usable
        if usable is not None and usable.uses.count > 0:
            return True
        used_at = self._touched_at if usable is None else usable.uses.last_used_at
        return max(used_at, self._touched_at) > self._looked_at

    async def _follow(self, config: TenantConfig, nursery: trio.Nursery) -> bool:
        """Whether it opened with that configuration."""

        async def load() -> TenantConfig:
            await trio.lowlevel.checkpoint()
            return config

        after = self._new_run(load)
        after.open()
        nursery.start_soon(after.live)
        await after.settled.wait()
        before = self._current
        if after.tenant is None:
            told = {} if after.failure is None else told_of(after.failure)
            log.warning("tenant_kept_as_it_was", tenant_id=self._tenant_id, **told)
        elif before.is_leaving:
            after.stop()
        else:
            log.info("tenant_changed", tenant_id=self._tenant_id)
            self._current = after
            self._tell_opened(after, after.tenant)
            before.stop()
            await before.ended.wait()
        return after.tenant is not None

    def _new_run(self, load: LoadConfig) -> TenantRun[TenantT]:
        return TenantRun(
            self._tenant_id,
            load,
            self._parts.open_tenant,
            job_wait_seconds=self._parts.times.job_wait_seconds,
        )

    def _tell_opened(self, run: TenantRun[TenantT], tenant: TenantT) -> None:
        self._parts.metrics.opened.inc()
        self._looked_at = trio.current_time()
        if self._opened_at is None:
            self._opened_at = self._looked_at
        if self._parts.is_draining():
            run.drain()
        self._opened(tenant)
