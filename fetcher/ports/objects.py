"""Objects: sealed results in a store."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Upload(Protocol):
    """One object being written. It is visible to nobody before ``complete``."""

    @property
    def may_appear_late(self) -> bool:
        """Asked once the upload was left: something of it may still come to be in the store, since
        a request had no answer. It was not completed; who must leave nothing looks again after
        ``LATE_WRITE_SECONDS``."""

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Take the bytes (copied before this returns); flush a part when 8 MiB have gathered."""

    async def complete(self) -> int:
        """Make the object visible under its key; its size in bytes.

        Where the store's answer is lost, the object's presence and size decide.
        """
        ...


class ObjectStore(Protocol):
    def upload(self, key: str) -> AbstractAsyncContextManager[Upload]:
        """Leaving the context without ``complete`` aborts, shielded: nothing stays behind."""
        ...

    def read(self, key: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The object's bytes in chunks. Entering raises ObjectNotFound."""
        ...

    async def size(self, key: str) -> int | None: ...

    async def delete(self, key: str) -> None:
        """Remove the object and its unfinished uploads; no error where there is none.

        Raise OperationRefused where it is this one that must stay (a hold on it), ValueError where
        no object has such a key, PortUnavailable.
        """

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        """A URL under which anyone may read the object for so long; None: this store has none.

        The object's presence is not looked at.
        """
        ...
