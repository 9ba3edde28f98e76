"""One object being written: a single put, or multipart with one part on its way."""

import io
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Final

import trio

from fetcher.adapters.s3.failures import StoreFailure
from fetcher.adapters.s3.multipart import S3Object
from fetcher.domain.errors import PortUnavailable

PART_BYTES: Final = 8 * 1024 * 1024
ABORT_SECONDS: Final = 15.0
CREATE_SECONDS: Final = 2.0
"""How long the answer to a create is waited for although nobody wants the upload any more."""


class S3Upload:
    """Upload. Less than 8 MiB is one put; more is sent in parts of 8 MiB.

    One part is on its way while the next one fills, so that at most two are held. After a failure
    or a cancellation in a write the upload is of no use: bytes may be missing from it.
    """

    def __init__(self, target: S3Object, nursery: trio.Nursery) -> None:
        self._target = target
        self._nursery = nursery
        self._filling = io.BytesIO()
        self._filled_bytes = 0
        self._shipped_bytes = 0
        self._upload_id = ""
        self._may_have_strays = False
        self._etags: list[str] = []
        self._arrived = trio.Event()
        self._arrived.set()
        self._failure: StoreFailure | None = None
        self._is_open = True
        self._has_asked = False
        self._is_finishing = False
        self._is_complete = False

    @property
    def may_appear_late(self) -> bool:
        """A put, a complete or a part that was given up may still be carried out, as may a create:
        what is deleted and aborted right then may come after it."""
        return self._has_asked and not self._is_complete

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self._check_open()
        size = len(chunk)
        if self._filled_bytes + size < PART_BYTES:
            self._filling.write(chunk)
            self._filled_bytes += size
            return
        self._is_open = False
        with memoryview(chunk).cast("B") as view:
            start = 0
            while start < size:
                end = min(size, start + PART_BYTES - self._filled_bytes)
                self._filling.write(view[start:end])
                self._filled_bytes += end - start
                start = end
                if self._filled_bytes == PART_BYTES:
                    await self._attempt(self._ship)
        self._is_open = True

    async def complete(self) -> int:
        self._check_open()
        self._is_open = False
        self._is_finishing = True
        await self._attempt(self._finish)
        self._is_complete = True
        return self._shipped_bytes

    async def discard(self) -> None:
        """Leave nothing but a completed object behind; no part may be on its way any more.

        Where the answer to a complete was lost the object may be there. Nobody was told of it, so
        it goes too. Failures are left to a later delete of the key, or to the bucket's rules.
        """
        with suppress(StoreFailure):
            if self._upload_id and not self._is_complete:
                await self._target.abort_upload(self._upload_id)
        with suppress(StoreFailure):
            if self._may_have_strays or (self._upload_id and not self._is_complete):
                await self._target.abort_unfinished_uploads()
        with suppress(StoreFailure):
            if self._is_finishing and not self._is_complete:
                await self._target.delete()

    async def _finish(self) -> None:
        if not self._upload_id:
            self._has_asked = True
            size = self._filled_bytes
            await self._target.put(self._filling, size=size)
            self._shipped_bytes = size
            return
        if self._filled_bytes:
            await self._ship()
        await self._arrival()
        await self._target.complete_upload(self._upload_id, self._etags, size=self._shipped_bytes)

    async def _ship(self) -> None:
        """Hand the full part to a task of its own, once the part before has arrived."""
        await self._arrival()
        if not self._upload_id:
            await self._create()
        part, self._filling = self._filling, io.BytesIO()
        self._shipped_bytes += self._filled_bytes
        self._filled_bytes = 0
        self._arrived = trio.Event()
        self._nursery.start_soon(self._send, len(self._etags) + 1, part, self._arrived)

    async def _create(self) -> None:
        """A create that is on its way goes on for a moment even if all else is cancelled: the store
        may carry it out after it has listed its uploads to who gave it up."""
        self._has_asked = True
        self._may_have_strays = True  # until an answer says otherwise, one may exist unnamed
        answered = trio.Event()
        asking = trio.CancelScope(shield=True)
        self._nursery.start_soon(self._ask_for_upload, asking, answered)
        try:
            await answered.wait()
        finally:
            with trio.move_on_after(CREATE_SECONDS, shield=True):
                await answered.wait()
            asking.cancel()
        if self._failure is not None:
            raise self._failure

    async def _ask_for_upload(self, asking: trio.CancelScope, answered: trio.Event) -> None:
        try:
            with asking:
                self._upload_id, self._may_have_strays = await self._target.create_upload()
        except StoreFailure as failure:
            self._failure = failure
        finally:
            answered.set()

    async def _send(self, number: int, part: io.BytesIO, arrived: trio.Event) -> None:
        try:
            self._etags.append(await self._target.send_part(self._upload_id, number, part))
        except StoreFailure as failure:
            self._failure = failure
        finally:
            arrived.set()

    async def _arrival(self) -> None:
        await self._arrived.wait()
        if self._failure is not None:
            raise self._failure

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
            return
        except StoreFailure as error:
            self._failure = failure = error
        raise failed_upload(failure)

    def _check_open(self) -> None:
        if self._failure is not None:
            raise failed_upload(self._failure)
        if not self._is_open:
            raise RuntimeError("this upload was completed, or cancelled in the middle of a write")


def failed_upload(failure: StoreFailure) -> PortUnavailable:
    return PortUnavailable(f"s3 upload failed: {failure.reason}")


class UploadContext(AbstractAsyncContextManager[S3Upload]):
    """Owns the task that sends a part.

    A class, since the nursery is open while the caller's body runs: what the body raises leaves as
    it is, never wrapped into a group by the nursery.
    """

    def __init__(self, target: S3Object) -> None:
        self._target = target

    async def __aenter__(self) -> S3Upload:
        self._nursery_manager = trio.open_nursery()
        self._nursery = await self._nursery_manager.__aenter__()
        self._upload = S3Upload(self._target, self._nursery)
        return self._upload

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Shielded, so that only our own cancellation reaches the part on its way, and is absorbed.
        self._nursery.cancel_scope.shield = True
        self._nursery.cancel_scope.cancel()
        await self._nursery_manager.__aexit__(None, None, None)
        with trio.move_on_after(ABORT_SECONDS, shield=True):
            await self._upload.discard()
