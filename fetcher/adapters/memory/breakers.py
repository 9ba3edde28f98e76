"""Breakers of connections in memory."""

from collections.abc import Mapping, Sequence

import trio

from fetcher.adapters.memory.state import MemoryState
from fetcher.domain.breakers import Breaker, BreakerChange, BreakerRule
from fetcher.domain.ids import ConnectionId


class MemoryBreakers:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def find(self, connection_ids: Sequence[ConnectionId]) -> Mapping[ConnectionId, Breaker]:
        await trio.lowlevel.checkpoint()
        self._drop_forgotten()
        records = self._state.breakers
        return {each: records[each] for each in connection_ids if each in records}

    async def change(self, connection_id: ConnectionId, rule: BreakerRule) -> BreakerChange:
        await trio.lowlevel.checkpoint()
        self._drop_forgotten()
        now = self._state.now()
        before = self._state.breakers.get(connection_id)
        after = rule(before, now)
        if after is None:
            self._state.breakers.pop(connection_id, None)
        else:
            self._state.breakers[connection_id] = after
        return BreakerChange(before=before, after=after, at=now)

    async def count_open(self) -> int:
        await trio.lowlevel.checkpoint()
        self._drop_forgotten()
        return sum(breaker.is_open for breaker in self._state.breakers.values())

    async def list_open(self, *, limit: int) -> Sequence[Breaker]:
        await trio.lowlevel.checkpoint()
        self._drop_forgotten()
        found = [breaker for breaker in self._state.breakers.values() if breaker.is_open]
        found.sort(key=lambda each: (each.changed_at, each.connection_id), reverse=True)
        return found[:limit]

    def _drop_forgotten(self) -> None:
        now = self._state.now()
        for connection_id, breaker in list(self._state.breakers.items()):
            if breaker.is_forgotten(now):
                del self._state.breakers[connection_id]
