"""Looks at many parts at once, of which any may be broken: each has its deadline and its answer."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from fetcher.domain.crash_report import crash_places, crash_types
from fetcher.domain.errors import PortError, StartRefused

PART_SECONDS: Final = 10.0
GRACE_SECONDS: Final = 1.0
"""How much longer than its deadline a part is waited for, so that it may end in order."""

Facts: TypeAlias = Mapping[str, object]
"""What JSON can say: ids, codes, counts, names and settings; never a value of a row or a filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``look`` tells the facts; what it raises is told in their place, beside what it put into
    ``found`` so far."""

    name: str
    look: Callable[[], Awaitable[Facts]]
    seconds: float = PART_SECONDS
    found: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """Without a ``failure`` the part was looked at in whole."""

    name: str
    seconds: float
    facts: Facts
    failure: Facts | None = None


async def look_at(parts: Sequence[Part], nursery: trio.Nursery) -> list[PartResult]:
    """All parts at once, in their order; takes as long as the longest deadline at most.

    They run in ``nursery``: one that does not end when it is told to (its thread waits for a disk)
    stays there and is told as out of time. Cancelling the nursery cancels them.
    """
    looks = [_Look(part) for part in parts]
    for look in looks:
        nursery.start_soon(look.run)
    async with trio.open_nursery() as waiting:
        for look in looks:
            waiting.start_soon(look.wait)
    return [look.told() for look in looks]


class _Look:
    def __init__(self, part: Part) -> None:
        self._part = part
        self._ended = trio.Event()
        self._seconds = part.seconds
        self._facts: Facts | None = None
        self._failure: Facts | None = {"code": "timeout"}

    async def run(self) -> None:
        started_at = trio.current_time()
        try:
            with trio.move_on_after(self._part.seconds):
                self._facts, self._failure = await self._looked()
        # A clean-up that fails comes in a group with the cancellation, which is not ours to keep.
        except* Exception as crash:  # noqa: BLE001 - one part's crash is no other's, and is told
            self._failure = _crash(crash)
        finally:
            self._seconds = min(trio.current_time() - started_at, self._part.seconds)
            self._ended.set()

    async def _looked(self) -> tuple[Facts | None, Facts | None]:
        try:
            return await self._part.look(), None
        except PortError as error:
            return None, {"code": error.code, "text": str(error)}
        except StartRefused as error:
            return None, {"code": "refused", "text": "; ".join(error.problems)}
        except Exception as crash:  # noqa: BLE001 - as above
            return None, _crash(crash)

    async def wait(self) -> None:
        with trio.move_on_after(self._part.seconds + GRACE_SECONDS):
            await self._ended.wait()

    def told(self) -> PartResult:
        return PartResult(
            name=self._part.name,
            seconds=math.floor(self._seconds * 1000) / 1000,
            facts=dict(self._part.found) if self._facts is None else self._facts,
            failure=self._failure,
        )


def _crash(crash: BaseException) -> Facts:
    return {"code": "crash", "type": crash_types(crash), "places": crash_places(crash)}
