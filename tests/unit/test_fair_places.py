"""Places that tenants take in turn."""

from collections import Counter

import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st

from fetcher.fair_places import FairPlaces, Places, TenantPlaces


class Job:
    """Waits for a place and keeps it until it is told to end."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.scope = trio.CancelScope()
        self.has_place = False
        self.ended = trio.Event()

    async def run(self) -> None:
        with self.scope:
            await self.places.acquire()
            self.has_place = True
            try:
                await self.ended.wait()
            finally:
                self.has_place = False
                self.places.release()


def granted(jobs: list[Job]) -> list[int]:
    return [number for number, job in enumerate(jobs) if job.has_place]


async def start(nursery: trio.Nursery, *places: Places) -> list[Job]:
    """Jobs that line up in this order."""
    jobs = [Job(each) for each in places]
    for job in jobs:
        nursery.start_soon(job.run)
        await trio.testing.wait_all_tasks_blocked()
    return jobs


async def end(job: Job) -> None:
    job.ended.set()
    await trio.testing.wait_all_tasks_blocked()


async def test_one_job_gets_the_next_free_place_however_many_jobs_of_another_wait() -> None:
    places = FairPlaces(4)
    crowd, other = places.of("crowd", 4), places.of("other", 4)
    async with trio.open_nursery() as nursery:
        many = [Job(crowd) for _ in range(10_000)]
        for job in many:
            nursery.start_soon(job.run)
        await trio.testing.wait_all_tasks_blocked()
        [one] = await start(nursery, other)
        assert (len(granted(many)), one.has_place) == (4, False)
        await end(many[granted(many)[0]])
        assert (len(granted(many)), one.has_place) == (3, True)
        nursery.cancel_scope.cancel()
    assert places.free == 4


async def test_a_free_place_goes_to_who_has_the_fewest_and_among_equals_got_one_longest_ago() -> (
    None
):
    places = FairPlaces(3)
    a, b, c = (places.of(name, 3) for name in "abc")
    async with trio.open_nursery() as nursery:
        running = await start(nursery, a, a, b)
        waiting = await start(nursery, a, b, c, c, b)
        assert granted(waiting) == []
        await end(running[0])
        assert granted(waiting) == [2], "c has none"
        await end(running[1])
        assert granted(waiting) == [0, 2], "a has none"
        await end(running[2])
        assert granted(waiting) == [0, 1, 2], "b has none"
        await end(waiting[2])
        assert granted(waiting) == [0, 1, 3], "c has none again"
        nursery.cancel_scope.cancel()


async def test_tenants_with_a_place_each_get_the_next_ones_in_turn() -> None:
    places = FairPlaces(2)
    a, b, c = (places.of(name, 2) for name in "abc")
    async with trio.open_nursery() as nursery:
        first, second = await start(nursery, a, b)
        waiting = await start(nursery, c, b, a, b, a)
        order = []
        for job in (first, second, waiting[0], waiting[2], waiting[1]):
            before = granted(waiting)
            await end(job)
            order += [number for number in granted(waiting) if number not in before]
        # c; then a, which got its last one before b; then b, a, b
        assert order == [0, 2, 1, 4, 3]
        nursery.cancel_scope.cancel()


async def test_no_tenant_has_more_than_it_may_and_a_place_stays_free_for_others() -> None:
    places = FairPlaces(5)
    a, b = places.of("a", 2), places.of("b", 2)
    async with trio.open_nursery() as nursery:
        jobs = await start(nursery, a, a, a, a)
        assert (granted(jobs), places.free) == ([0, 1], 3)
        with pytest.raises(trio.WouldBlock):
            a.acquire_nowait()
        b.acquire_nowait()
        assert places.free == 2
        assert places.of("a", 3) is a
        await trio.testing.wait_all_tasks_blocked()
        assert granted(jobs) == [0, 1, 2]
        nursery.cancel_scope.cancel()


async def test_a_place_that_came_too_late_for_who_gave_up_goes_to_the_next() -> None:
    places = FairPlaces(1)
    a, b = places.of("a", 1), places.of("b", 1)
    a.acquire_nowait()
    async with trio.open_nursery() as nursery:
        first, second = await start(nursery, b, b)
        # given and given up in one go: the waiting task has not run in between
        a.release()
        first.scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert (first.has_place, second.has_place) == (False, True)
        await end(second)
    assert places.free == 1
    assert not places._in_line


async def test_a_tenant_that_comes_back_shares_with_jobs_of_its_last_run() -> None:
    places = FairPlaces(3)
    before = places.of("a", 2)
    before.acquire_nowait()
    again = places.of("a", 2)
    again.acquire_nowait()
    with pytest.raises(trio.WouldBlock):
        again.acquire_nowait()
    before.release()
    again.acquire_nowait()
    assert places.free == 1
    again.release()
    again.release()
    del before, again
    assert not places._tenants, "a tenant that nobody uses is forgotten"


async def test_where_room_is_left_who_takes_all_it_can_gets_half_and_two_a_third_each() -> None:
    places = FairPlaces(12, leaves_room=True)
    a, b, c = (places.of(name, 12) for name in "abc")
    async with trio.open_nursery() as nursery:
        greedy = await start(nursery, *[a] * 12)
        assert (a.held, places.free) == (6, 6)
        more = await start(nursery, *[b] * 12)
        assert (a.held, b.held, places.free) == (6, 3, 3)
        late = await start(nursery, *[c] * 12)
        assert (c.held, places.free) == (2, 1), "what is free stays so for who comes next"
        for job in greedy[:2]:
            await end(job)
        assert (a.held, b.held, c.held, places.free) == (4, 3, 3, 2)
        for job in [*greedy[2:], *late]:
            job.ended.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (a.held, b.held, c.held, places.free) == (0, 6, 0, 6)
        for job in more:
            job.ended.set()
    assert places.free == 12


async def test_where_room_is_left_the_last_place_is_for_who_has_none() -> None:
    places = FairPlaces(1, leaves_room=True)
    a, b = places.of("a", 1), places.of("b", 1)
    a.acquire_nowait()
    with pytest.raises(trio.WouldBlock):
        b.acquire_nowait()
    a.release()
    b.acquire_nowait()
    b.release()


async def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="at least one place"):
        FairPlaces(0)
    places = FairPlaces(1)
    with pytest.raises(ValueError, match="at least one place"):
        places.of("a", 0)
    with pytest.raises(RuntimeError, match="nobody has"):
        places.of("a", 1).release()
    assert places.free == 1


async def test_a_cancelled_acquire_takes_nothing_also_where_a_place_is_free() -> None:
    places = FairPlaces(1)
    tenant = places.of("a", 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await tenant.acquire()
    assert scope.cancelled_caught
    assert places.free == 1


# --- whatever happens ------------------------------------------------------------------------

TENANTS = 4
LIMITS = st.lists(st.integers(1, 4), min_size=TENANTS, max_size=TENANTS)
STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "end", "cancel", "end and cancel"]), st.integers(0, 30)),
    max_size=40,
)


@given(total=st.integers(1, 8), at_most=LIMITS, steps=STEPS, leaves_room=st.booleans())
def test_no_place_is_lost_or_given_twice(
    total: int, at_most: list[int], steps: list[tuple[str, int]], leaves_room: bool
) -> None:
    trio.run(_play, FairPlaces(total, leaves_room=leaves_room), at_most, steps)


async def _play(places: FairPlaces, at_most: list[int], steps: list[tuple[str, int]]) -> None:
    tenants = [places.of(str(number), limit) for number, limit in enumerate(at_most)]
    jobs: list[Job] = []
    async with trio.open_nursery() as nursery:
        for what, number in steps:
            if what == "start" or not jobs:
                jobs += await start(nursery, tenants[number % TENANTS])
            job = jobs[number % len(jobs)]
            if "end" in what:
                job.ended.set()
            if "cancel" in what:
                jobs[-1 - number % len(jobs)].scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            _check(places, tenants, jobs)
        nursery.cancel_scope.cancel()
    assert places.free == places.total
    for tenant in tenants:
        assert (tenant.held, len(tenant.waiting)) == (0, 0)


def _check(places: FairPlaces, tenants: list[TenantPlaces], jobs: list[Job]) -> None:
    held = Counter(str(id(job.places)) for job in jobs if job.has_place)
    assert places.free == places.total - sum(held.values())
    for tenant in tenants:
        assert tenant.held == held[str(id(tenant))] <= tenant.at_most
        if places.free:
            assert not (tenant.may_take_more and tenant.waiting), "a place lies idle"


@example(seconds=[1, 1, 1, 1, 5, 18], total=3)
@given(seconds=st.lists(st.integers(1, 50), min_size=6, max_size=6), total=st.integers(1, 3))
def test_nobody_starves(seconds: list[int], total: int) -> None:
    """Every tenant always has jobs that wait; each job of one takes so long."""
    trio.run(_starve, seconds, total, clock=trio.testing.MockClock(autojump_threshold=0))


class WatchedPlaces(FairPlaces):
    """Sees that who waits and has no place gets one after each of the others got one at most. It
    looks when a place is given: the task that gets it goes on later."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self.tenants: list[TenantPlaces] = []
        self.passed_over: Counter[TenantPlaces] = Counter()

    def _grant(self, tenant: TenantPlaces) -> None:
        super()._grant(tenant)
        for each in self.tenants:
            waits_in_vain = each.waiting and not each.held
            self.passed_over[each] = self.passed_over[each] + 1 if waits_in_vain else 0
        assert max(self.passed_over.values()) < len(self.tenants)


async def _starve(seconds: list[int], total: int) -> None:
    places = WatchedPlaces(total)
    places.tenants += [places.of(str(number), total) for number in range(len(seconds))]
    served = 0

    async def work(number: int, tenant: TenantPlaces) -> None:
        nonlocal served
        while served < 60:
            await tenant.acquire()
            served += 1
            await trio.sleep(seconds[number])
            tenant.release()

    async with trio.open_nursery() as nursery:
        for number, tenant in enumerate(places.tenants):
            for _ in range(total):
                nursery.start_soon(work, number, tenant)
