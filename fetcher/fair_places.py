"""Places for what goes on at once in one process, taken in turn by its tenants.

Spec configuration 11.8: without turns one tenant's queue would keep all others' jobs waiting.
"""

from collections import deque
from itertools import count
from typing import Protocol, cast
from weakref import WeakValueDictionary

import trio


class Places(Protocol):
    """A process without tenants has a :class:`trio.Semaphore`, which is one."""

    def acquire_nowait(self) -> None:
        """Take a place. Raise :class:`trio.WouldBlock` where that would have to wait."""
        ...

    async def acquire(self) -> None:
        """Wait for a place and take it. Cancelled: none was taken."""
        ...

    def release(self) -> object:
        """Give back a place that was taken."""
        ...


class PlacesLimiter:
    """Places as trio's threads take them: all that its documentation asks of a limiter. It does not
    matter which of the threads gives a place back, and one that was left alone does so at its end.
    """

    def __init__(self, places: Places) -> None:
        self._places = places

    async def acquire_on_behalf_of(self, borrower: object) -> None:  # noqa: ARG002 - trio's name
        await self._places.acquire()

    def release_on_behalf_of(self, borrower: object) -> None:  # noqa: ARG002 - trio's name
        self._places.release()


def limiter_of(places: Places) -> trio.CapacityLimiter:
    """For :func:`trio.to_thread.run_sync`, whose types ask for more than its documentation."""
    return cast("trio.CapacityLimiter", PlacesLimiter(places))


class _Waiting:
    """One who waits for a place."""

    __slots__ = ("granted",)

    def __init__(self) -> None:
        self.granted = trio.Event()


class TenantPlaces:
    """One tenant's share; Places for its intake."""

    def __init__(self, places: "FairPlaces", at_most: int) -> None:
        self.at_most = at_most
        self.held = 0
        """Places that the tenant has now."""
        self.last_turn = 0
        """When it got one last, counted in places given; 0: never."""
        self.waiting: deque[_Waiting] = deque()
        self._places = places

    @property
    def may_take_more(self) -> bool:
        return self.held < min(self.at_most, self._places.most_for_one)

    def acquire_nowait(self) -> None:
        self._places.take(self)

    async def acquire(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._places.take(self)
        except trio.WouldBlock:
            await self._wait()
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _wait(self) -> None:
        waiting = _Waiting()
        self._places.line_up(self, waiting)
        try:
            await waiting.granted.wait()
        except BaseException:
            if waiting.granted.is_set():
                self.release()
            else:
                self._places.step_out(self, waiting)
            raise

    def release(self) -> None:
        """Raise RuntimeError where the tenant has none."""
        self._places.give_back(self)


class FairPlaces:
    """``total`` places. A free one goes to the waiting tenant that has the fewest, among equals to
    the one that got its last one longest ago; within a tenant to who waited longest.

    So one job of a tenant gets the next free place, however many jobs of others wait.

    With ``leaves_room`` a tenant takes one only while it has fewer than are free: where places are
    held for long, a turn comes too late. One that takes all it can gets half, two a third each
    (Choudhury and Hahne's dynamic thresholds, as in :mod:`fetcher.api.fair_room`).
    """

    def __init__(self, total: int, *, leaves_room: bool = False) -> None:
        """Raise ValueError below 1."""
        if total < 1:
            raise ValueError("there must be at least one place")
        self.total = total
        self._free = total
        self._leaves_room = leaves_room
        self._turns = count(1)
        self._tenants: WeakValueDictionary[str, TenantPlaces] = WeakValueDictionary()
        self._in_line: dict[TenantPlaces, None] = {}
        """Ordered, for those that never had a turn."""

    @property
    def free(self) -> int:
        return self._free

    @property
    def most_for_one(self) -> int:
        """A tenant that has as many takes no more now."""
        return self._free if self._leaves_room else self.total

    def of(self, tenant_id: str, at_most: int) -> TenantPlaces:
        """The tenant's places, ``at_most`` so many at once. A tenant that is started anew while
        jobs of its last run still have places shares them. Raise ValueError below 1."""
        if at_most < 1:
            raise ValueError("a tenant must be allowed at least one place")
        places = self._tenants.get(tenant_id)
        if places is None:
            places = self._tenants[tenant_id] = TenantPlaces(self, at_most)
        else:
            places.at_most = at_most
            self._hand_out()
        return places

    def take(self, tenant: TenantPlaces) -> None:
        """Raise :class:`trio.WouldBlock`. While a place is free nobody waits who may have it."""
        if not (self._free and tenant.may_take_more):
            raise trio.WouldBlock
        self._grant(tenant)

    def line_up(self, tenant: TenantPlaces, waiting: _Waiting) -> None:
        tenant.waiting.append(waiting)
        self._in_line.setdefault(tenant)

    def step_out(self, tenant: TenantPlaces, waiting: _Waiting) -> None:
        tenant.waiting.remove(waiting)
        if not tenant.waiting:
            del self._in_line[tenant]

    def give_back(self, tenant: TenantPlaces) -> None:
        """Raise RuntimeError where the tenant has none."""
        if tenant.held == 0:
            raise RuntimeError("a place was given back that nobody has")
        tenant.held -= 1
        self._free += 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free:
            takers = [tenant for tenant in self._in_line if tenant.may_take_more]
            if not takers:
                return
            tenant = min(takers, key=lambda each: (each.held, each.last_turn))
            waiting = tenant.waiting[0]
            self.step_out(tenant, waiting)
            self._grant(tenant)
            waiting.granted.set()

    def _grant(self, tenant: TenantPlaces) -> None:
        self._free -= 1
        tenant.held += 1
        tenant.last_turn = next(self._turns)
