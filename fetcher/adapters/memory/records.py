"""The record store in memory."""

from fetcher.adapters.memory.audit import MemoryAudit
from fetcher.adapters.memory.breakers import MemoryBreakers
from fetcher.adapters.memory.connections import MemoryConnections
from fetcher.adapters.memory.credentials import MemoryCredentials
from fetcher.adapters.memory.jobs import MemoryJobs
from fetcher.adapters.memory.leases import MemoryExpiredLeases, MemoryLeases
from fetcher.adapters.memory.outboxes import MemoryCleanup, MemoryDispatch, MemoryEvents
from fetcher.adapters.memory.retention import MemoryRetention
from fetcher.adapters.memory.state import MemoryState
from fetcher.adapters.memory.statistics import MemoryStatistics
from fetcher.ports import RecordStore, UtcNow


def open_memory_records(now: UtcNow) -> RecordStore:
    """A record store for one process and one life; ``now`` is the store's clock.

    Every method is one checkpoint and then one step that nothing interrupts: when cancelled, it
    has changed nothing. Records go in and out as copies.
    """
    state = MemoryState(clock=now)
    return RecordStore(
        connections=MemoryConnections(state),
        credentials=MemoryCredentials(state),
        breakers=MemoryBreakers(state),
        jobs=MemoryJobs(state),
        dispatch=MemoryDispatch(state),
        leases=MemoryLeases(state),
        expired=MemoryExpiredLeases(state),
        events=MemoryEvents(state),
        cleanup=MemoryCleanup(state),
        retention=MemoryRetention(state),
        audit=MemoryAudit(state),
        statistics=MemoryStatistics(state),
    )
