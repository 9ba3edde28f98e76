"""An object store whose answers may be lost, and whose deletes may fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Upload
from tests.simulation.faults import Link, Part

DISCARD_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class StoredObject:
    content: bytes
    version: int
    """Which completed upload it came by."""


@dataclass
class Bucket:
    """What everybody sees, whoever asks."""

    objects: dict[str, StoredObject] = field(default_factory=dict)
    completed: int = 0
    locked: set[str] = field(default_factory=set)
    """Keys that nobody may delete, as under a legal hold."""

    async def put(self, key: str, content: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.completed += 1
        self.objects[key] = StoredObject(content, self.completed)

    async def delete(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        if key in self.locked:
            raise PortUnavailable("locked")
        self.objects.pop(key, None)

    async def size(self, key: str) -> int | None:
        await trio.lowlevel.checkpoint()
        stored = self.objects.get(key)
        return len(stored.content) if stored else None


class SimObjects:
    """ObjectStore of one process, as far as actors use it."""

    def __init__(self, bucket: Bucket, link: Link) -> None:
        self.bucket = bucket
        self.link = link

    @asynccontextmanager
    async def upload(self, key: str) -> AsyncIterator[Upload]:
        upload = SimUpload(self, key)
        try:
            yield upload
        finally:
            with trio.move_on_after(DISCARD_SECONDS, shield=True):
                await upload.discard()

    async def delete(self, key: str) -> None:
        await self.link.call(Part.OBJECTS, "delete", lambda: self.bucket.delete(key))


class SimUpload:
    """As the adapter for S3: presence and size decide where the answer to complete is lost."""

    def __init__(self, store: SimObjects, key: str) -> None:
        self._store = store
        self._key = key
        self._content = bytearray()
        self._is_finishing = False
        self._is_complete = False

    @property
    def may_appear_late(self) -> bool:
        return self._is_finishing and not self._is_complete

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        async def keep() -> None:
            await trio.lowlevel.checkpoint()

        self._content += chunk
        await self._store.link.call(Part.OBJECTS, "part", keep)

    async def complete(self) -> int:
        self._is_finishing = True
        content, bucket, link = bytes(self._content), self._store.bucket, self._store.link
        try:
            await link.call(Part.OBJECTS, "complete", lambda: bucket.put(self._key, content))
        except PortUnavailable:
            size = await link.call(Part.OBJECTS, "head", lambda: bucket.size(self._key))
            if size != len(content):
                raise
        self._is_complete = True
        return len(content)

    async def discard(self) -> None:
        if not self._is_finishing or self._is_complete:
            return
        try:
            await self._store.delete(self._key)
        except PortUnavailable:
            return
