"""The supervisor: one nursery, a restart policy for each actor, and the order of the way down."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

import structlog
import trio

from fetcher.actors.board import ActorBoard
from fetcher.actors.contained import cancellation_in, found_in
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.backoff import full_jitter
from fetcher.domain.crash_report import crash_places, crash_types
from fetcher.domain.errors import StartRefused

log = structlog.get_logger(__name__)

MAX_RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
LAST_ROUND_SECONDS = 10.0
RELEASE_SECONDS = 10.0
EXTRACTOR = "extractor-"
"""How the names of extractors begin."""


class Actor(Protocol):
    """Owns its state, shares none; talks to others over channels only."""

    @property
    def name(self) -> str: ...

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        """Work until cancelled, or until the lifecycle tells this actor to end."""


class Restart(StrEnum):
    PERMANENT = "permanent"
    """Must not end before the drain: ending early is restarted like a crash."""
    TRANSIENT = "transient"
    """May end when its work is done; only a crash is restarted."""


@dataclass(frozen=True, slots=True)
class Supervised:
    actor: Actor
    restart: Restart = Restart.PERMANENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownTimes:
    drain_seconds: float
    """How long readiness says 503 while requests are still served."""
    job_wait_seconds: float
    """How long running jobs may go on after that, before they are released."""
    request_wait_seconds: float = 30.0
    """How long running requests may go on after the drain window."""

    @property
    def tenants_wait_seconds(self) -> float:
        """Their own supervisors have the same times, one after another at the worst."""
        return (
            self.request_wait_seconds + self.job_wait_seconds + RELEASE_SECONDS + LAST_ROUND_SECONDS
        )


class Supervisor:
    """Runs actors until the lifecycle drains, then takes them down in order.

    A crash restarts the actor after a wait with full jitter; the sixth crash within a minute drains
    the process, which then ends with a failure. ``StartRefused`` (a port in use) is no crash: it
    ends the process at once.
    """

    def __init__(
        self,
        actors: Sequence[Supervised],
        *,
        lifecycle: Lifecycle,
        times: ShutdownTimes,
        metrics: ActorMetrics,
        board: ActorBoard,
    ) -> None:
        self._actors = tuple(actors)
        self._lifecycle = lifecycle
        self._times = times
        self._metrics = metrics
        for spec in self._actors:
            # From 0 on, or the first crash would be no increase.
            metrics.restarts.labels(actor=spec.actor.name)
        self._board = board
        self._ended = {spec.actor.name: trio.Event() for spec in self._actors}
        self._refused: StartRefused | None = None
        self._refused_scope = trio.CancelScope()

    async def run(self) -> None:
        """Return after an orderly way down. Raise StartRefused when an actor refused to start."""
        async with trio.open_nursery() as nursery:
            for spec in self._actors:
                nursery.start_soon(self._supervise, spec, name=spec.actor.name)
            with self._refused_scope:
                await self._lifecycle.draining.wait()
                await self._go_down()
            nursery.cancel_scope.cancel()
        if self._refused is not None:
            raise self._refused

    async def _supervise(self, spec: Supervised) -> None:
        crashes: deque[float] = deque(maxlen=MAX_RESTARTS + 1)
        try:
            while True:
                self._board.began(spec.actor.name)
                crash = await self._run_once(spec, first=not crashes)
                if crash is None:
                    return
                self._board.crashed(spec.actor.name, crash)
                crashes.append(trio.current_time())
                self._metrics.restarts.labels(actor=spec.actor.name).inc()
                if len(crashes) > MAX_RESTARTS and (
                    crashes[-1] - crashes[0] <= RESTART_WINDOW_SECONDS
                ):
                    self._board.gave_up(spec.actor.name)
                    log.error("actor_gave_up", actor=spec.actor.name, crash=crash)
                    self._lifecycle.fail(f"actor {spec.actor.name} crashed too often: {crash}")
                    return
                await trio.sleep(full_jitter(len(crashes) - 1, base_seconds=0.1, cap_seconds=5.0))
        finally:
            self._board.ended(spec.actor.name)
            self._ended[spec.actor.name].set()

    async def _run_once(self, spec: Supervised, *, first: bool) -> str | None:
        """None: the actor has ended and that is well. Else what the crash was, by type only.

        A restart that is refused (its port was taken meanwhile) is a crash like any other: jobs
        run, and the process must not end without its way down.
        """
        try:
            await spec.actor.run(task_status=trio.TASK_STATUS_IGNORED)
        except Exception as crash:  # noqa: BLE001 - an actor's boundary: the unexpected ends here
            refusal = find_refusal(crash) if first else None
            if refusal is not None:
                self._refuse(refusal)
                return None
            self._log_crash(spec, crash)
            return crash_types(crash)
        except BaseExceptionGroup as mixed:
            # A crash on the way down comes in one group with the cancellation.
            raise cancellation_in(mixed, partial(self._log_crash, spec)) from None
        if spec.restart is Restart.TRANSIENT or self._lifecycle.draining.is_set():
            return None
        log.error("actor_ended_early", actor=spec.actor.name)
        return "ended early"

    def _log_crash(self, spec: Supervised, crash: Exception) -> None:
        log.error(
            "actor_crashed",
            actor=spec.actor.name,
            crash=crash_types(crash),
            places=crash_places(crash),
        )

    def _refuse(self, refused: StartRefused) -> None:
        self._refused = self._refused or refused
        self._refused_scope.cancel()

    async def _go_down(self) -> None:
        times = self._times
        log.info("drain_started", seconds=times.drain_seconds)
        await trio.sleep(times.drain_seconds)
        self._lifecycle.closing.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._wait_for, "http", times.request_wait_seconds)
            nursery.start_soon(self._wait_for, "tenants", times.tenants_wait_seconds)
            await self._wait_for("intake", times.job_wait_seconds)
            await self._end_workers()
        self._lifecycle.last_round.set()
        await self._wait_for("outbox_relay", LAST_ROUND_SECONDS)
        log.info("drain_finished")

    async def _end_workers(self) -> None:
        """Extractors end, those at work give back their jobs: also such whose intake has crashed
        since it brought them."""
        workers = [name for name in self._ended if name == "intake" or name.startswith(EXTRACTOR)]
        if all(self._ended[name].is_set() for name in workers):
            return
        self._lifecycle.releasing.set()
        async with trio.open_nursery() as nursery:
            for name in workers:
                nursery.start_soon(self._wait_for, name, RELEASE_SECONDS)

    async def _wait_for(self, actor_name: str, seconds: float) -> None:
        ended = self._ended.get(actor_name)
        if ended is not None:
            with trio.move_on_after(seconds):
                await ended.wait()


def find_refusal(error: BaseException) -> StartRefused | None:
    """The refusal inside nested exception groups, as nurseries raise them."""
    return found_in(error, StartRefused)
