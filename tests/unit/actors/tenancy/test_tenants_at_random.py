"""Whatever happens to tenants in whatever order: none runs twice, those that are gone end, those
that are there run in the end, and nothing is left behind."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.actors.channels import Reply
from fetcher.actors.messages import TenantWanted
from fetcher.actors.tenancy.tenants import Tenants
from fetcher.actors.tenancy.uses import TenantClosed
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenant_events import TenantEventType
from fetcher.domain.tenants import TenantError, TenantSuspended
from tests.scale import scaled
from tests.unit.actors.tenancy.bench import FakeTenant, TenantBench, a_config, an_event

NAMES: Final = ("acme", "beta")
Answer = FakeTenant | TenantError | PortUnavailable

seconds = st.sampled_from([0.0, 0.05, 0.3, 2.0, 20.0, 70.0])
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("sleep"), seconds),
    st.tuples(st.sampled_from(["want", "hold", TenantEventType.PURGED.value]), names),
    st.tuples(st.sampled_from([kind.value for kind in TenantEventType]), names),
    st.tuples(
        st.sampled_from(
            [
                "want",
                "use",
                "crash",
                "drain",
                "change",
                "suspend",
                "unlist",
                "return",
                "break",
                "mend",
                "away",
                "back",
                "lose",
                "hold",
                "let go",
                "slow",
                "fast",
            ]
        ),
        names,
    ),
)


class World:
    """Does what a step says."""

    def __init__(self, bench: TenantBench, nursery: trio.Nursery) -> None:
        self.bench = bench
        self.replies: list[Reply[Answer]] = []
        self._nursery = nursery
        self._version = 1
        self._deeds: dict[str, Callable[[str], None]] = {
            "want": self._want,
            "use": self._use,
            "crash": self._crash,
            "drain": self._drain,
            "change": self._change,
            "suspend": self._suspend,
            "unlist": self._unlist,
            "return": self.bring_back,
            "break": self._break,
            "mend": self._mend,
            "away": lambda _: setattr(self.bench.directory, "is_away", True),
            "back": lambda _: setattr(self.bench.directory, "is_away", False),
            "lose": lambda _: self.bench.events.tell(PortUnavailable("redis cannot be reached")),
            "hold": lambda _: setattr(self.bench.world, "job_seconds", 25.0),
            "let go": lambda _: setattr(self.bench.world, "job_seconds", 0.0),
            "slow": lambda _: setattr(self.bench.world, "open_seconds", 10.0),
            "fast": lambda _: setattr(self.bench.world, "open_seconds", 0.2),
        }

    def do(self, what: str, name: str) -> None:
        deed = self._deeds.get(what)
        if deed is None:
            self.bench.events.tell(an_event(what, name))
        else:
            deed(name)

    def bring_back(self, name: str) -> None:
        self.bench.directory.known[name] = a_config(name, version=str(self._version))
        if name not in self.bench.directory.listed:
            self.bench.directory.listed.append(name)

    def _want(self, name: str) -> None:
        wanted = TenantWanted[FakeTenant](tenant_id=name)
        if self.bench.wants.offer(wanted):
            self.replies.append(wanted.reply)

    def _use(self, name: str) -> None:
        tenant = self._last(name)
        if tenant is not None and not tenant.uses.is_closed:
            self._nursery.start_soon(self._be_served, tenant)

    async def _be_served(self, tenant: FakeTenant) -> None:
        with suppress(TenantClosed), tenant.uses.enter(), trio.move_on_after(40):
            await tenant.cut.wait()

    def _crash(self, name: str) -> None:
        tenant = self._last(name)
        if tenant is not None:
            tenant.fail(ValueError("boom"))

    def _drain(self, name: str) -> None:
        tenant = self._last(name)
        if tenant is not None:
            tenant.lifecycle.fail("an actor crashed too often")

    def _change(self, name: str) -> None:
        self._version += 1
        self.bench.directory.known[name] = a_config(name, version=str(self._version))

    def _suspend(self, name: str) -> None:
        self.bench.directory.known[name] = TenantSuspended("suspended")
        self._unlist(name)

    def _unlist(self, name: str) -> None:
        if name in self.bench.directory.listed:
            self.bench.directory.listed.remove(name)

    def _break(self, name: str) -> None:
        self.bench.world.broken[name] = PortUnavailable("mongodb cannot be reached")

    def _mend(self, name: str) -> None:
        self.bench.world.broken.pop(name, None)

    def _last(self, name: str) -> FakeTenant | None:
        return self.bench.world.last(name) if self.bench.world.opened_count(name) else None


@given(st.lists(steps, max_size=40), st.booleans(), st.booleans())
@settings(max_examples=scaled(60), deadline=None)
def test_tenants_at_random(
    happenings: list[tuple[str, float | str]], discovers: bool, settles: bool
) -> None:
    async def run() -> None:
        bench = TenantBench().limited(reconcile_seconds=7, most_open=2, idle_seconds=100)
        bench.directory.add(NAMES[0])
        async with trio.open_nursery() as nursery:
            world = World(bench, nursery)
            async with bench.running(discovers=discovers) as actor:
                for what, detail in happenings:
                    if isinstance(detail, str):
                        world.do(what, detail)
                        await trio.lowlevel.checkpoint()
                    else:
                        await trio.sleep(detail)
                if settles:
                    await settle(world, actor, discovers=discovers)
        # whoever waited has got an answer
        with trio.fail_after(1):
            for reply in world.replies:
                await reply.get()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


async def settle(world: World, actor: Tenants[FakeTenant], *, discovers: bool) -> None:
    bench = world.bench
    bench.world.broken.clear()
    bench.world.job_seconds = 0
    bench.world.open_seconds = 0.2
    bench.directory.is_away = False
    for name in NAMES:
        known = bench.directory.known.get(name)
        if known is None or isinstance(known, Exception):
            bench.directory.known[name] = TenantSuspended("suspended")
            if name in bench.directory.listed:
                bench.directory.listed.remove(name)
        elif name not in bench.directory.listed:
            bench.directory.listed.append(name)
    await trio.sleep(200)
    there = sorted(bench.directory.listed)
    if discovers:
        assert bench.world.runs == there
        for name in there:
            assert bench.world.last(name).config == bench.directory.known[name]
    else:
        for name in there:
            assert (await bench.open(name)).config == bench.directory.known[name]
        await trio.sleep(1)
        assert bench.world.runs == there
    assert sorted(bench.world.open_now.elements()) == there
    assert [state.tenant_id for state in actor.states()] == there
