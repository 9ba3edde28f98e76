"""Keeps the leases of this process's jobs, and hears of what takes them away."""

from dataclasses import dataclass

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import LeaseEnded, LeaseLoss, LeaseStarted
from fetcher.domain.errors import PortError
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import LeaseState
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
    """Renews every lease in turn and asks once a second, in one query, which were taken away.

    It never ends an attempt itself: it answers the attempt's ``lost``, and the attempt stops.
    """

    name = "lease_keeper"

    def __init__(
        self, *, leases: JobLeases, commands: Channel[LeaseStarted | LeaseEnded], times: LeaseTimes
    ) -> None:
        self._leases = leases
        self._commands = commands
        self._times = times
        self._held: dict[JobId, _Held] = {}

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            async for command in self._commands:
                job_id = command.lease.job_id
                if isinstance(command, LeaseStarted):
                    self._held[job_id] = _Held(command, trio.current_time())
                elif job_id in self._held and (
                    self._held[job_id].started.lease.token == command.lease.token
                ):
                    del self._held[job_id]

    async def _watch(self) -> None:
        while True:
            await trio.sleep(CHECK_SECONDS)
            if not self._held:
                continue
            with trio.move_on_after(STORE_SECONDS):
                await self._check()
            for held in list(self._held.values()):
                if trio.current_time() - held.renewed_at >= self._times.renew_seconds:
                    with trio.move_on_after(STORE_SECONDS):
                        await self._renew(held)
            self._give_up_on_unrenewed()

    async def _check(self) -> None:
        try:
            states = await self._leases.check([h.started.lease for h in self._held.values()])
        except PortError as failure:
            log.warning("lease_check_failed", code=failure.code)
            return
        for job_id, state in states.items():
            if state is LeaseState.CANCEL_REQUESTED:
                self._lose(job_id, LeaseLoss.CANCEL_REQUESTED)
            elif state is LeaseState.LOST:
                self._lose(job_id, LeaseLoss.SUPERSEDED)

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
            self._lose(lease.job_id, LeaseLoss.SUPERSEDED)

    def _give_up_on_unrenewed(self) -> None:
        for job_id, held in list(self._held.items()):
            if trio.current_time() - held.renewed_at >= self._times.give_up_seconds:
                self._lose(job_id, LeaseLoss.UNRENEWED)

    def _lose(self, job_id: JobId, loss: LeaseLoss) -> None:
        held = self._held.pop(job_id, None)
        if held is not None:
            log.warning("lease_lost", job_id=str(job_id), loss=loss.value)
            held.started.lost.set(loss)
