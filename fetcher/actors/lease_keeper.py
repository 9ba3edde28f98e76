"""Keeps the leases of this process's jobs, and hears of what takes them away."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import LeaseEnded, LeaseLoss, LeaseStarted
from fetcher.domain.errors import PortError
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import LeaseState
from fetcher.ports import JobLeases

log = structlog.get_logger(__name__)

CHECK_SECONDS = 1.0
STORE_SECONDS = 5.0
"""Deadline of one question to the record store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """``lease_seconds`` is the store's; the rest is measured by our monotonic clock.

    An attempt ends itself when no renewal came through for ``lease_seconds - margin_seconds``.
    """

    lease_seconds: float = 60.0
    renew_seconds: float = 15.0
    margin_seconds: float = 10.0

    @property
    def give_up_seconds(self) -> float:
        return self.lease_seconds - self.margin_seconds


@dataclass(slots=True)
class _Held:
    started: LeaseStarted
    renewed_at: float


class LeaseKeeper:
    """Renews every lease and asks once a second, in one query, which were taken away.

    It never ends an attempt itself: it answers the attempt's ``lost``, and the attempt stops. The
    clock is watched beside the questions to the store, and these are asked side by side, so that
    neither a slow answer nor many jobs keep a lease from being renewed or given up in time. While
    no lease is held nothing wakes.
    """

    name = "lease_keeper"

    def __init__(
        self, *, leases: JobLeases, commands: Channel[LeaseStarted | LeaseEnded], times: LeaseTimes
    ) -> None:
        self._leases = leases
        self._commands = commands
        self._times = times
        self._held: dict[JobId, _Held] = {}
        self._begins = trio.Event()
        """Set when a lease is held."""

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._ask_the_store)
            nursery.start_soon(self._watch_the_clock)
            async for command in self._commands:
                job_id = command.lease.job_id
                if isinstance(command, LeaseStarted):
                    self._hold(command)
                elif job_id in self._held and (
                    self._held[job_id].started.lease.token == command.lease.token
                ):
                    del self._held[job_id]

    def _hold(self, started: LeaseStarted) -> None:
        """A job that this process claimed anew was taken from its own earlier attempt, which may
        not know yet: nobody else would tell it."""
        earlier = self._held.get(started.lease.job_id)
        if earlier is not None:
            self._lose(earlier, LeaseLoss.SUPERSEDED)
        self._held[started.lease.job_id] = _Held(started, started.asked_at)
        self._begins.set()

    async def _until_a_lease_is_held(self) -> None:
        while not self._held:
            if self._begins.is_set():
                self._begins = trio.Event()
            await self._begins.wait()

    async def _ask_the_store(self) -> None:
        while True:
            await self._until_a_lease_is_held()
            await trio.sleep(CHECK_SECONDS)
            held_now = list(self._held.values())
            with trio.move_on_after(STORE_SECONDS):
                async with trio.open_nursery() as questions:
                    if held_now:
                        questions.start_soon(self._check, held_now)
                    for held in held_now:
                        if trio.current_time() - held.renewed_at >= self._times.renew_seconds:
                            questions.start_soon(self._renew, held)

    async def _watch_the_clock(self) -> None:
        while True:
            await self._until_a_lease_is_held()
            await trio.sleep(CHECK_SECONDS)
            for held in list(self._held.values()):
                if trio.current_time() - held.renewed_at >= self._times.give_up_seconds:
                    self._lose(held, LeaseLoss.UNRENEWED)

    async def _check(self, asked: Sequence[_Held]) -> None:
        try:
            states = await self._leases.check([held.started.lease for held in asked])
        except PortError as failure:
            log.warning("lease_check_failed", code=failure.code)
            return
        for held in asked:
            state = states[held.started.lease.job_id]
            if state is LeaseState.CANCEL_REQUESTED:
                self._lose(held, LeaseLoss.CANCEL_REQUESTED)
            elif state is LeaseState.LOST:
                self._lose(held, LeaseLoss.SUPERSEDED)

    async def _renew(self, held: _Held) -> None:
        asked_at = trio.current_time()
        lease = held.started.lease
        try:
            ours = await self._leases.renew(lease, lease_seconds=self._times.lease_seconds)
        except PortError as failure:
            log.warning("lease_renewal_failed", job_id=str(lease.job_id), code=failure.code)
            return
        if ours:
            held.renewed_at = asked_at
        else:
            self._lose(held, LeaseLoss.SUPERSEDED)

    def _lose(self, held: _Held, loss: LeaseLoss) -> None:
        """An answer may come late: it says nothing of a later lease on the same job."""
        job_id = held.started.lease.job_id
        if self._held.get(job_id) is held:
            del self._held[job_id]
            log.warning("lease_lost", job_id=str(job_id), loss=loss.value)
            held.started.lost.set(loss)
