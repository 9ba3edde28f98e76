"""A store seen from one of its folders, so that the contract's keys lie in it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from fetcher.ports import ObjectStore, Upload


class Below:
    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix

    def upload(self, key: str) -> AbstractAsyncContextManager[Upload]:
        return self._objects.upload(self._prefix + key)

    def read(self, key: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._objects.read(self._prefix + key)

    async def size(self, key: str) -> int | None:
        return await self._objects.size(self._prefix + key)

    async def delete(self, key: str) -> None:
        await self._objects.delete(self._prefix + key)

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        return await self._objects.temporary_address(self._prefix + key, seconds=seconds)
