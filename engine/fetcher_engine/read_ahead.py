"""Where a step's bytes wait for its turn: 4 MiB in memory, then in the host's spool (design 5)."""

from collections.abc import Awaitable, Callable

from fetcher_engine.concurrency import Handoff
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import if_it_can
from fetcher_engine.ports import SpoolFile

MEMORY_BYTES = 4 * 1024 * 1024
_SPOOL_READ_BYTES = 256 * 1024

OpenSpool = Callable[[], Awaitable[SpoolFile]]


class ReadAhead:
    """One step's bytes between its reader and the writer: one producer, one consumer.

    Order is that of the hand-off: where bytes went to the spool, their count stands in their place.
    """

    def __init__(self, handoff: Handoff[bytes | int], open_spool: OpenSpool | None) -> None:
        self._handoff = handoff
        self._open_spool = open_spool
        self._file: SpoolFile | None = None
        self._in_memory = 0
        self._left_in_spool = 0
        self._is_turn = False

    async def send(self, piece: bytes) -> None:
        """Append; wait for room where memory is full and there is no spool, or none is needed."""
        cost = min(len(piece), MEMORY_BYTES)
        full = self._in_memory > 0 and self._in_memory + cost > MEMORY_BYTES
        if full and not self._is_turn and await self._was_spooled(piece):
            await self._handoff.send(len(piece), 0)
            return
        self._in_memory += cost
        await self._handoff.send(piece, cost)

    def take_turn(self) -> None:
        """The writer has come to this step: from now on a slow writer holds the source back."""
        self._is_turn = True

    async def receive(self) -> bytes:
        """The next bytes. Raise HandoffClosed at the end, ``unavailable`` for a lost spool."""
        if not self._left_in_spool:
            item = await self._handoff.receive()
            if isinstance(item, bytes):
                self._in_memory -= min(len(item), MEMORY_BYTES)
                return item
            self._left_in_spool = item
        data = await self._from_spool(min(self._left_in_spool, _SPOOL_READ_BYTES))
        self._left_in_spool -= len(data)
        return data

    def close(self) -> None:
        """No more bytes come."""
        self._handoff.close()

    async def aclose(self) -> None:
        """Free the spool; idempotent."""
        if self._file is not None:
            await self._file.aclose()

    async def _was_spooled(self, piece: bytes) -> bool:
        open_spool = self._open_spool
        if open_spool is None:
            return False

        async def append() -> bool:
            if self._file is None:
                self._file = await open_spool()
            await self._file.append(piece)
            return True

        # a spool that is full or broken costs time, not the run
        if await if_it_can(append) is None:
            self._open_spool = None
            return False
        return True

    async def _from_spool(self, max_bytes: int) -> bytes:
        file = self._file
        data: object = None if file is None else await if_it_can(lambda: file.read(max_bytes))
        if not isinstance(data, bytes) or not 0 < len(data) <= max_bytes:
            raise EngineError(ErrorCategory.UNAVAILABLE, "failed to spool extraction result")
        return data
