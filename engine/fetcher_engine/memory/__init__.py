"""Every port in memory, for tests and first steps: no I/O, no environment, no event loop (spec 16).

Each method reads and writes without awaiting in between, so that it is atomic on one thread; use
from several threads is not supported. The ``…_error`` attributes inject faults.
"""

from fetcher_engine.memory.clock import ManualClock
from fetcher_engine.memory.connections import MemoryConnectionIdStore, MemoryConnectionStore
from fetcher_engine.memory.connector import (
    MemoryConnector,
    MemoryConnectorFactory,
    MemorySource,
    MemoryStream,
)
from fetcher_engine.memory.executions import MemoryExecutionStore, RecordingExecutionStore
from fetcher_engine.memory.registry import MemoryRegistry
from fetcher_engine.memory.schemas import MemorySchemaCache
from fetcher_engine.memory.sink import MemoryResultSink, MemoryResultStream
from fetcher_engine.memory.spool import MemorySpool, MemorySpoolFile
from fetcher_engine.memory.trampoline import run_trampoline

__all__ = [
    "ManualClock",
    "MemoryConnectionIdStore",
    "MemoryConnectionStore",
    "MemoryConnector",
    "MemoryConnectorFactory",
    "MemoryExecutionStore",
    "MemoryRegistry",
    "MemoryResultSink",
    "MemoryResultStream",
    "MemorySchemaCache",
    "MemorySource",
    "MemorySpool",
    "MemorySpoolFile",
    "MemoryStream",
    "RecordingExecutionStore",
    "run_trampoline",
]
