"""What many ask for at the same time, done by one call of a store.

A call costs much more than one more record in it: a thread's turn, or a crossing to the driver, and
the server's way through a statement.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from fetcher.domain.errors import PortUnavailable

K = TypeVar("K")
V = TypeVar("V")

KEYS_A_CALL: Final = 32
CALLS_AT_ONCE: Final = 1
"""So many calls wait for their answers while the next gathers."""
GATHER_SECONDS: Final = 0.02
"""No longer does it gather: a store that hangs holds each caller as long as its own call would."""


@dataclass(slots=True)
class _Batch(Generic[K, V]):
    keys: set[K]
    ended: trio.Event = field(default_factory=trio.Event)
    answers: Mapping[K, V] | None = None
    failure: PortUnavailable | None = None


class Together(Generic[K, V]):
    """Calls for single keys, made for all who ask until one begins.

    ``call`` answers for at most ``KEYS_A_CALL`` different keys. Each call begins after it was asked
    for, so that a read sees what was written before. Who asks first makes it; when that one is
    cancelled amid it, the others ask anew: ``call`` must be one that may be made twice.
    """

    def __init__(self, call: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._call = call
        self._turns = trio.Semaphore(CALLS_AT_ONCE)
        self._gathering: _Batch[K, V] | None = None

    async def ask(self, key: K) -> V | None:
        """None where the call has no answer. Raise PortUnavailable, to all who asked together."""
        while True:
            batch = self._gathering
            if batch is None or (len(batch.keys) >= KEYS_A_CALL and key not in batch.keys):
                batch = self._gathering = _Batch({key})
                await self._lead(batch)
            else:
                batch.keys.add(key)
                await batch.ended.wait()
            if batch.failure is not None:
                raise copy(batch.failure)
            if batch.answers is not None:
                return batch.answers.get(key)

    async def _lead(self, batch: _Batch[K, V]) -> None:
        has_turn = False
        try:
            with trio.move_on_after(GATHER_SECONDS):
                await self._turns.acquire()
                has_turn = True
            self._close(batch)
            batch.answers = await self._call(tuple(batch.keys))
        except PortUnavailable as failure:
            batch.failure = failure
        finally:
            if has_turn:
                self._turns.release()
            self._close(batch)
            batch.ended.set()

    def _close(self, batch: _Batch[K, V]) -> None:
        """Nobody joins it any more."""
        if self._gathering is batch:
            self._gathering = None
