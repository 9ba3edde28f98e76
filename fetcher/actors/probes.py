"""Runs the dependency probes, on request and each with its own deadline."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import ProbeOrder
from fetcher.domain.crash_report import crash_places, crash_types
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.queries.probing import TIMED_OUT, timed_probe

log = structlog.get_logger(__name__)

GRACE_SECONDS: Final = 0.25
"""How much longer than its deadline a probe is waited for, so that it may word its own end."""
MOST_LEFT_BEHIND: Final = 4
"""So many runs of one probe may be past their deadline; more are not begun."""


class Probes:
    """Every order runs every probe, in parallel and uncached (spec configuration 6.3).

    An answer comes in time whatever a probe does: one that does not end when it is told to (its
    thread waits for a disk, its driver for a peer) is left behind. Its run counts until it ends.
    ``observe`` is told of every round that was waited for.
    """

    name = "probes"

    def __init__(
        self,
        *,
        probes: Sequence[Probe],
        orders: Channel[ProbeOrder],
        observe: Callable[[Mapping[str, ProbeResult]], None] = lambda _: None,
    ) -> None:
        self._probes = tuple(probes)
        self._orders = orders
        self._observe = observe
        self._left_behind: Counter[str] = Counter()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        self._left_behind.clear()
        async with trio.open_nursery() as nursery:
            async for order in self._orders:
                look = partial(self._look, nursery)
                nursery.start_soon(order.reply.answer_by, look)

    async def _look(self, nursery: trio.Nursery) -> Mapping[str, ProbeResult]:
        results = await run_probes(self._probes, nursery, left_behind=self._left_behind)
        self._observe(results)
        return results


async def run_probes(
    probes: Sequence[Probe], nursery: trio.Nursery, *, left_behind: "Counter[str] | None" = None
) -> Mapping[str, ProbeResult]:
    """All probes at once; takes about as long as the longest deadline among them.

    They run in ``nursery``, where those stay that do not end in time; ``left_behind`` counts them.
    Cancelling the caller cancels them.
    """
    behind = left_behind if left_behind is not None else Counter()
    runs = [_Run(probe, behind) for probe in probes]
    begun = [run for run in runs if behind[run.probe.name] < MOST_LEFT_BEHIND]
    try:
        async with trio.open_nursery() as waiting:
            for run in begun:
                nursery.start_soon(run.run)
                waiting.start_soon(run.wait)
        return {run.probe.name: run.result for run in runs}
    finally:
        for run in begun:
            run.give_up()


class _Run:
    """One run of one probe."""

    def __init__(self, probe: Probe, left_behind: "Counter[str]") -> None:
        self.probe = probe
        self.result = TIMED_OUT
        self._left_behind = left_behind
        self._is_behind = False
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def run(self) -> None:
        try:
            with self._scope:
                self.result = await timed_probe(self.probe)
        except Exception as crash:  # noqa: BLE001 - a probe's boundary: its crash is one entry down
            log.error(
                "probe_crashed",
                dep=self.probe.name,
                crash=crash_types(crash),
                places=crash_places(crash),
            )
            self.result = ProbeResult(status=ProbeStatus.DOWN, error="the check failed")
        finally:
            self._ended.set()
            if self._is_behind:
                self._left_behind[self.probe.name] -= 1

    async def wait(self) -> None:
        with trio.move_on_after(self.probe.timeout_seconds + GRACE_SECONDS):
            await self._ended.wait()

    def give_up(self) -> None:
        """Nobody waits any more: whatever still runs is told to end, and counts until it has."""
        if not self._ended.is_set():
            self._is_behind = True
            self._left_behind[self.probe.name] += 1
            self._scope.cancel()
