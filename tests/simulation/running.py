"""Runs one program from its seed, and says what it found."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import trio
import trio.testing
from trio._core import _run as trio_run

from tests.simulation.invariants import final_violations
from tests.simulation.programs import Program
from tests.simulation.world import World

LEASE_SECONDS = 60.0
REQUEST_SECONDS = 25.0
"""A request that was under way at the last event has been answered by then."""
CLAIM_SECONDS = LEASE_SECONDS + 30.0
"""Within this time of a death, somebody else works on the job (design section 4, step 8)."""


@dataclass(frozen=True)
class Limits:
    """``unclaimed_seconds`` is for the time after the last event; ``settled_seconds`` too."""

    unclaimed_seconds: float
    settled_seconds: float


@dataclass(frozen=True)
class Report:
    violations: tuple[str, ...]
    trace: tuple[str, ...]
    steps: int
    jobs: int
    parked: int
    """How often a job was left waiting for its connection."""
    probes: int
    results_gone: int
    jobs_gone: int
    """Deleted since they had had their time."""


def run_program(program: Program, limits: Limits) -> Report:
    with seeded(program.seed):
        return trio.run(_run, program, limits, clock=trio.testing.MockClock(autojump_threshold=0))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Chance as the seed has it, in the product's jitter and in the order of trio's tasks too."""
    before = random.getstate(), trio_run._r.getstate()
    deterministic = trio_run._ALLOW_DETERMINISTIC_SCHEDULING
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc] # as trio's plugin does
    random.seed(seed)
    trio_run._r.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        trio_run._r.setstate(before[1])
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = deterministic  # type: ignore[misc]


async def _run(program: Program, limits: Limits) -> Report:
    worlds: list[World] = []
    found: list[str] = []
    async with trio.open_nursery() as nursery:
        rng = random.Random(program.seed)  # noqa: S311 - replays
        world = World(rng, program.rate, nursery, expires=program.expires)
        worlds.append(world)
        await world.open()
        for gap_seconds, event in program.events:
            await trio.sleep(gap_seconds)
            world.network.trace.append(f"{trio.current_time():.3f} {event}")
            event.happen(world)
        world.end_faults()
        world.start_missing()
        found += await _settle(world, limits)
        nursery.cancel_scope.cancel()
    [world] = worlds
    expiry = world.expiry
    violations = [*world.safety.violations, *world.outages.violations] or [
        *found,
        *final_violations(world.safety, world.bucket, world.broker.events),
        *(f"dead letter: {reason}" for _, reason in world.broker.dead_letters),
    ]
    return Report(
        violations=tuple(violations),
        trace=tuple(world.network.trace),
        steps=world.network.steps,
        jobs=len(world.safety.jobs),
        parked=world.safety.parked,
        probes=world.outages.probes,
        results_gone=len(expiry.results_gone) if expiry is not None else 0,
        jobs_gone=expiry.jobs_gone if expiry is not None else 0,
    )


async def _settle(world: World, limits: Limits) -> list[str]:
    """Let time pass until nothing is left to do; what took longer than it may."""
    patience = world.turned_back_seconds
    began_at = trio.current_time()
    unclaimed_since: dict[object, float] = {}
    while (now := trio.current_time()) < began_at + REQUEST_SECONDS or not world.is_settled():
        if now - began_at > limits.settled_seconds + patience:
            return ["work is left when all should be done"]
        for entry in world.entries:
            job = entry.job
            if not job.status.is_active or world.is_worked_on(entry) or world.waits(job):
                unclaimed_since.pop(job.id, None)
                continue
            since = unclaimed_since.setdefault(job.id, now)
            if now - since > limits.unclaimed_seconds + patience:
                return [f"{job.id} ({job.status}): claimed by nobody for {now - since:.0f} s"]
        await trio.sleep(1.0)
        world.start_missing()
    return []


def shortened(program: Program, still_fails: Callable[[Program], bool]) -> Program:
    """Without every event that the failure does not need, tried one by one."""
    place = 0
    while place < len(program.events):
        events = program.events
        (gap_seconds, _), later = events[place], list(events[place + 1 :])
        if later:
            # What comes afterwards happens at the same time as before.
            later[0] = (later[0][0] + gap_seconds, later[0][1])
        tried = replace(program, events=(*events[:place], *later))
        if still_fails(tried):
            program = tried
        else:
            place += 1
    return program
