"""One tenant's part of an object store that tenants share."""

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import unquote

import structlog
import trio

from fetcher.domain.errors import ObjectNotFound
from fetcher.ports import ObjectStore, Upload

log = structlog.get_logger(__name__)

_UNUSUAL: Final = re.compile(r"[\\\x00-\x1f\x7f]")


class TenantObjects:
    """ObjectStore: whatever key it is asked for, it reaches no other tenant's objects.

    A key outside of ``prefix`` (:meth:`fetcher.domain.tenants.Tenant.object_prefix`) is one under
    which nothing lies; uploading to it is a ValueError, since we make those keys ourselves. Keys
    that somebody between us and the store may read as another one (``..``, empty parts, a
    backslash, percent-encoded characters) are outside, whatever they begin with.
    """

    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        """Raise ValueError for a prefix that is no folder."""
        if not prefix.endswith("/") or not prefix.strip("/"):
            raise ValueError("a tenant's prefix must be a folder of its own")
        self._objects = objects
        self._prefix = prefix

    def upload(self, key: str) -> AbstractAsyncContextManager[Upload]:
        """Raise ValueError for a key outside."""
        if not self._is_ours(key, "upload"):
            raise ValueError("the object would not lie in its tenant's folder")
        return self._objects.upload(key)

    def read(self, key: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        if not self._is_ours(key, "read"):
            return _Nothing(key)
        return self._objects.read(key)

    async def size(self, key: str) -> int | None:
        if not self._is_ours(key, "size"):
            await trio.lowlevel.checkpoint()
            return None
        return await self._objects.size(key)

    async def delete(self, key: str) -> None:
        if not self._is_ours(key, "delete"):
            await trio.lowlevel.checkpoint()
            return
        await self._objects.delete(key)

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        if not self._is_ours(key, "temporary_address"):
            await trio.lowlevel.checkpoint()
            return None
        return await self._objects.temporary_address(key, seconds=seconds)

    def _is_ours(self, key: str, operation: str) -> bool:
        """Told where it is not: a record of the tenant's names such a key."""
        if key.startswith(self._prefix) and _is_plain(key.removeprefix(self._prefix)):
            return True
        log.error("object_key_outside", operation=operation, prefix=self._prefix)
        return False


def _is_plain(key: str) -> bool:
    has_odd_part = any(part in {"", ".", ".."} for part in key.split("/"))
    return not has_odd_part and _UNUSUAL.search(key) is None and unquote(key) == key


class _Nothing(AbstractAsyncContextManager[AsyncIterator[bytes]]):
    """A read of an object that is not there."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def __aenter__(self) -> AsyncIterator[bytes]:
        await trio.lowlevel.checkpoint()
        raise ObjectNotFound(f"object not found: {self._key}")

    async def __aexit__(self, *_: object) -> None:
        await trio.lowlevel.checkpoint()
