"""Runs the dependency probes, on request and each with its own deadline."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import ProbeOrder
from fetcher.ports import Probe, ProbeResult, ProbeStatus


class Probes:
    """Every order runs every probe, in parallel and uncached (spec configuration 6.3)."""

    name = "probes"

    def __init__(self, *, probes: Sequence[Probe], orders: Channel[ProbeOrder]) -> None:
        self._probes = tuple(probes)
        self._orders = orders

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            async for order in self._orders:
                nursery.start_soon(self._answer, order)

    async def _answer(self, order: ProbeOrder) -> None:
        with order.reply.answering():
            order.reply.set(await run_probes(self._probes))


async def run_probes(probes: Sequence[Probe]) -> Mapping[str, ProbeResult]:
    """All probes at once; takes about as long as the longest deadline among them."""
    results: dict[str, ProbeResult] = {}

    async def run_one(probe: Probe) -> None:
        started = time.perf_counter()
        results[probe.name] = ProbeResult(status=ProbeStatus.DOWN, error="timeout")
        with trio.move_on_after(probe.timeout_seconds):
            result = await probe.check()
            if result.latency_ms == 0 and result.status in (ProbeStatus.UP, ProbeStatus.DEGRADED):
                elapsed_ms = int((time.perf_counter() - started) * 1000)
                result = replace(result, latency_ms=elapsed_ms)
            results[probe.name] = result

    async with trio.open_nursery() as nursery:
        for probe in probes:
            nursery.start_soon(run_one, probe)
    return {probe.name: results[probe.name] for probe in probes}
