"""One discovery of a source at a time, however many callers miss the cache (spec 12)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field

from fetcher_engine.concurrency import Concurrency, Handoff, HandoffClosed
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import Checkpoint
from fetcher_engine.schema import SchemaSnapshot

_ITS_OWN = frozenset({ErrorCategory.CANCELED, ErrorCategory.INTERNAL})
"""Failures of the leader's own host, such as its cancel signal: they are nobody else's."""

Key = tuple[str, str, str]
Discover = Callable[[], Awaitable[SchemaSnapshot]]


@dataclass(slots=True)
class _Flight:
    """A discovery that its leader has begun, and those who wait for it."""

    answer: SchemaSnapshot | EngineError | None = None
    waiting: list[Handoff[None]] = field(default_factory=list)


class DiscoveryFlights:
    """Shares discoveries between the calls of one Engine.

    The first caller discovers in its own task, under its own deadline; the others wait for its
    answer, a failure included, so that a source that is down is not asked by each in turn. A leader
    that is cancelled or runs out of its own time leaves the work to one of those who wait. Without
    a concurrency port nobody can wait, and each discovers for itself.
    """

    def __init__(self, concurrency: Concurrency | None) -> None:
        self._concurrency = concurrency
        self._flights: dict[Key, _Flight] = {}

    async def join(self, key: Key, discover: Discover, checkpoint: Checkpoint) -> SchemaSnapshot:
        """What ``discover`` returns or raises, here or in the caller that is ahead.

        Whoever has waited raises its own deadline or cancellation first; a cancel signal is not
        asked while it waits.
        """
        while (flight := self._flights.get(key)) is not None:
            # nothing is ever sent: that it closes is the message, which needs no await to tell
            landed = self._handoff()
            if landed is None:
                return await discover()
            flight.waiting.append(landed)
            with suppress(HandoffClosed):
                await landed.receive()
            await checkpoint()
            if isinstance(flight.answer, EngineError):
                raise copy(flight.answer)
            if flight.answer is not None:
                return flight.answer
        return await self._lead(key, discover)

    async def _lead(self, key: Key, discover: Discover) -> SchemaSnapshot:
        flight = self._flights[key] = _Flight()
        try:
            flight.answer = await discover()
            return flight.answer
        except EngineError as error:
            if error.category not in _ITS_OWN:
                flight.answer = copy(error)
            raise
        finally:
            del self._flights[key]
            for landed in flight.waiting:
                landed.close()

    def _handoff(self) -> Handoff[None] | None:
        return None if self._concurrency is None else self._concurrency.handoff(1)
