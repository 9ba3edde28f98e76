"""What goes wrong between a process and a part outside of it, decided by one seeded random."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import trio

from fetcher.domain.errors import PortUnavailable

T = TypeVar("T")

LATEST_SECONDS = 10.0
"""What its caller gave up takes effect within this time, or never."""


class Part(StrEnum):
    """What a process talks to."""

    RECORDS = "records"
    BROKER = "broker"
    OBJECTS = "objects"

    def __repr__(self) -> str:
        """As source, so that a program that is shown can be run."""
        return f"Part.{self.name}"


class Fate(StrEnum):
    """What becomes of one operation."""

    ANSWERED = "answered"
    FAILED = "failed"
    """Refused before it took effect."""
    UNHEARD = "unheard"
    """It took effect, and its answer is lost."""
    LATE = "late"
    """It fails for the caller, and takes effect some seconds afterwards."""
    DIES_BEFORE = "dies_before"
    DIES_AFTER = "dies_after"
    """The process is killed, and the operation has taken effect or not."""

    def __repr__(self) -> str:
        """As source, so that a program that is shown can be run."""
        return f"Fate.{self.name}"


class ProcessKilled(BaseException):
    """A killed process tried to reach something: clean-up that no kill -9 would ever run."""


@dataclass
class FaultPlan:
    """The random faults of a run, and those that its program asks for."""

    rng: random.Random
    rate: float
    """The share of operations that meet a random fault."""
    on_fault: Callable[[str], None]
    """Told of each operation that does not simply get its answer, before it fails."""
    ordered: dict[str, list[Fate]] = field(default_factory=dict)
    """The fates of the next operations of a name."""
    away_until: dict[Part, float] = field(default_factory=dict)
    is_over: bool = False

    def order(self, operation: str, fate: Fate, *, skip: int, count: int) -> None:
        fates = [Fate.ANSWERED] * skip + [fate] * count
        self.ordered.setdefault(operation, []).extend(fates)

    def take_away(self, part: Part, seconds: float) -> None:
        until = trio.current_time() + seconds
        self.away_until[part] = max(self.away_until.get(part, until), until)

    def end(self) -> None:
        """From now on everything works."""
        self.is_over = True

    def next(self, part: Part, operation: str) -> Fate:
        fate = self._drawn(part, operation)
        if fate is not Fate.ANSWERED:
            self.on_fault(operation)
        return fate

    def _drawn(self, part: Part, operation: str) -> Fate:
        if self.is_over:
            return Fate.ANSWERED
        if trio.current_time() < self.away_until.get(part, 0.0):
            return Fate.FAILED
        if ordered := self.ordered.get(operation):
            return ordered.pop(0)
        if self.rng.random() < self.rate:
            return self.rng.choice([Fate.FAILED, Fate.UNHEARD, Fate.LATE])
        return Fate.ANSWERED


@dataclass
class Network:
    """Carries operations: it delays them, loses them or their answers, and tells what was done."""

    faults: FaultPlan
    rng: random.Random
    on_effect: Callable[[], None]
    nursery: trio.Nursery
    steps: int = 0
    under_way: int = 0
    """Effects that are to come although their callers gave up."""
    trace: list[str] = field(default_factory=list)

    def start_late(self, effect: Callable[[], Awaitable[object]]) -> None:
        self.under_way += 1
        self.nursery.start_soon(self._apply_late, effect, self.rng.uniform(0.1, LATEST_SECONDS))

    async def _apply_late(
        self, effect: Callable[[], Awaitable[object]], delay_seconds: float
    ) -> None:
        await trio.sleep(delay_seconds)
        try:
            await effect()
        except Exception:  # noqa: BLE001 - nobody is there to hear of it
            return
        finally:
            self.under_way -= 1
            self.on_effect()


@dataclass
class Link:
    """One process's way to the outside. Killed, it lets nothing pass; stalled, it only waits."""

    network: Network
    process: str
    kill: Callable[[], None]
    is_dead: bool = False
    stalled_until: float = 0.0

    async def call(self, part: Part, name: str, effect: Callable[[], Awaitable[T]]) -> T:
        """Run the effect as fate has it. Raise PortUnavailable, or what the effect raises."""
        self._refuse_dead()
        network, rng = self.network, self.network.rng
        network.steps += 1
        fate = network.faults.next(part, name)
        network.trace.append(f"{trio.current_time():.3f} {self.process} {part} {name} {fate}")
        try:
            await self._travel(rng.uniform(0.001, 0.02))
        except trio.Cancelled:
            # The request may be on its way all the same.
            if fate is not Fate.FAILED and not network.faults.is_over and rng.random() < 0.5:
                network.start_late(effect)
            raise
        if fate is Fate.DIES_BEFORE:
            self.kill()
            self._refuse_dead()
        if fate is Fate.FAILED:
            await self._travel(rng.choice([0.001, 0.5, 6.0]))
            raise PortUnavailable(f"{part} away")
        if fate is Fate.LATE:
            network.start_late(effect)
            await self._travel(rng.choice([0.01, 6.0]))
            raise PortUnavailable(f"{part}: no answer yet")
        try:
            answer = await effect()
        finally:
            network.on_effect()
        if fate is Fate.DIES_AFTER:
            self.kill()
        await self._travel(rng.uniform(0.001, 0.02))
        if fate is Fate.UNHEARD:
            raise PortUnavailable(f"{part}: answer lost")
        return answer

    async def _travel(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await trio.sleep_until(max(self.stalled_until, trio.current_time()))
        self._refuse_dead()

    def _refuse_dead(self) -> None:
        if self.is_dead:
            raise ProcessKilled


class LinkedPort:
    """A port of the record store, reached over a link."""

    def __init__(self, port: object, link: Link) -> None:
        self._port = port
        self._link = link

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        method = getattr(self._port, name)

        async def call(*args: object, **named: object) -> object:
            return await self._link.call(Part.RECORDS, name, lambda: method(*args, **named))

        return call
