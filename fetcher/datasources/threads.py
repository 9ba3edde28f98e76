"""Threads for the blocking calls to sources, counted by what they do: who waits behind whom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, TypeVarTuple, cast

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True, eq=False)
class ThreadKind:
    """What some threads do; those of one kind are counted together, over all of a process."""

    at_once: int


class ThreadLimiter(Protocol):
    """What trio needs of a limiter; :class:`trio.CapacityLimiter` is one."""

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """Wait for a place and take it. Cancelled: none was taken."""

    def release_on_behalf_of(self, borrower: object) -> None:
        """Give the place back; also when who took it was cancelled long ago."""


class SourceThreads(Protocol):
    """The threads that whoever reads a source may use."""

    def of(self, kind: ThreadKind) -> ThreadLimiter: ...


class ProcessThreads:
    """All of a process: nobody else's work is in it."""

    def __init__(self) -> None:
        self._limiters: dict[ThreadKind, trio.CapacityLimiter] = {}

    def of(self, kind: ThreadKind) -> ThreadLimiter:
        if kind not in self._limiters:
            self._limiters[kind] = trio.CapacityLimiter(kind.at_once)
        return self._limiters[kind]


PROCESS_THREADS: Final = ProcessThreads()


async def in_thread(
    limiter: ThreadLimiter,
    work: Callable[[*Ts], T],
    *args: *Ts,
    abandon_on_cancel: bool = False,
) -> T:
    """As :func:`trio.to_thread.run_sync`, whose documentation asks for less than its types do."""
    return await trio.to_thread.run_sync(
        work,
        *args,
        abandon_on_cancel=abandon_on_cancel,
        limiter=cast("trio.CapacityLimiter", limiter),
    )
