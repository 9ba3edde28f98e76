"""Whoever asks when, whatever is forgotten and cancelled: nobody is told what was before."""

from dataclasses import dataclass, field

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from fetcher.domain.tenants import TenantsUnavailable
from fetcher.tenancy.remembered import Remembered

KEPT_SECONDS = 20


@dataclass(frozen=True)
class Call:
    at: int
    fresh: bool
    patience: int


@dataclass
class World:
    """A value that grows by one each second that is in ``changes``; ``forgotten`` at some."""

    calls: list[Call]
    changes: list[int]
    forgotten: list[int]
    takes: int
    fails: list[int]
    value: int = 0
    floor: int = 0
    """Who asks now is told at least this."""
    open_now: int = 0
    answered: int = 0
    problems: list[str] = field(default_factory=list)

    async def ask(self, _: str) -> int:
        self.open_now += 1
        if self.open_now > 1:
            self.problems.append("two questions at a time")
        began, told = trio.current_time(), self.value
        try:
            await trio.sleep(self.takes)
        finally:
            self.open_now -= 1
        if int(began) in self.fails:
            raise TenantsUnavailable("away")
        return told

    async def call(self, remembered: Remembered[str, int], call: Call) -> None:
        await trio.sleep(call.at)
        least = self.value if call.fresh else self.floor
        oldest = trio.current_time() - KEPT_SECONDS - self.takes
        least = max(least, sum(1 for change in self.changes if change < oldest))
        with trio.move_on_after(call.patience + 0.5):
            try:
                told = await remembered.get("acme", fresh=call.fresh)
            except TenantsUnavailable:
                return
            self.answered += 1
            if told < least:
                self.problems.append(f"{call} was told {told}, not {least}")

    async def run(self) -> None:
        remembered = Remembered[str, int](self.ask, seconds=KEPT_SECONDS, entries=10)
        async with trio.open_nursery() as nursery:
            for call in self.calls:
                nursery.start_soon(self.call, remembered, call)
            for second in range(60):
                await trio.sleep(second + 0.25 - trio.current_time())
                self.value += self.changes.count(second)
                if second in self.forgotten:
                    remembered.forget("acme")
                    self.floor = self.value


seconds = st.integers(0, 50)
worlds = st.builds(
    World,
    calls=st.lists(st.builds(Call, at=seconds, fresh=st.booleans(), patience=seconds), max_size=15),
    changes=st.lists(seconds, max_size=15),
    forgotten=st.lists(seconds, max_size=5),
    takes=st.integers(0, 8),
    fails=st.lists(seconds, max_size=10),
)


@given(worlds)
def test_nobody_is_told_what_was_before(world: World) -> None:
    trio.run(world.run, clock=MockClock(autojump_threshold=0))
    assert world.problems == []
    assert world.open_now == 0


def test_the_world_answers() -> None:
    world = World([Call(1, False, 9), Call(2, True, 9)], [1], [], 3, [])
    trio.run(world.run, clock=MockClock(autojump_threshold=0))
    assert (world.answered, world.problems) == (2, [])
