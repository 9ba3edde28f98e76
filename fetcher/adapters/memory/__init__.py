"""Everything in this process's memory: for tests, ours and those of our users.

No threads and no clock of its own, so that it runs under trio's ``MockClock``.
"""

from fetcher.adapters.memory.limiter import MemoryTestLimiter
from fetcher.adapters.memory.records import open_memory_records
from fetcher.adapters.memory.schema_cache import MemorySchemaCache

__all__ = ["MemorySchemaCache", "MemoryTestLimiter", "open_memory_records"]
