"""A spool that only pretends to be elsewhere than in memory."""

from fetcher_engine.context import TenantContext


class MemorySpool:
    """Keeps its files in ``files``, closed ones too; the ``…_error`` attributes inject faults."""

    def __init__(self) -> None:
        self.open_error: Exception | None = None
        self.append_error: Exception | None = None
        self.read_error: Exception | None = None
        self.files: list[MemorySpoolFile] = []

    async def open(self, tenant: TenantContext, max_bytes: int) -> "MemorySpoolFile":
        if self.open_error is not None:
            raise self.open_error
        self.files.append(MemorySpoolFile(self, tenant, max_bytes))
        return self.files[-1]


class MemorySpoolFile:
    """One file: its bytes until they are read, and how many there ever were."""

    def __init__(self, spool: MemorySpool, tenant: TenantContext, max_bytes: int) -> None:
        self.tenant = tenant
        self.max_bytes = max_bytes
        self.appended_bytes = 0
        self.close_count = 0
        self._spool = spool
        self._data = bytearray()

    @property
    def unread_bytes(self) -> int:
        """How many bytes wait to be read."""
        return len(self._data)

    async def append(self, data: bytes) -> None:
        if self._spool.append_error is not None:
            raise self._spool.append_error
        self._data += data
        self.appended_bytes += len(data)

    async def read(self, max_bytes: int) -> bytes:
        if self._spool.read_error is not None:
            raise self._spool.read_error
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        return data

    async def aclose(self) -> None:
        self.close_count += 1
        self._data.clear()
