"""The calls of one object's upload; each may run twice (StoreFailure out of every one)."""

import io
from dataclasses import dataclass
from typing import Any, Final

import trio

from fetcher.adapters.s3.failures import (
    Deadline,
    StoreFailure,
    back_off,
    call_store,
)

CONTENT_TYPE: Final = "application/octet-stream"

OUTAGE_SECONDS: Final = 60.0
"""A store that is away for so long fails no upload: its rows would have to be read again."""

# A part that needs longer than this is slower than 70 kB/s.
TRANSFER: Final = Deadline(120, outage_seconds=OUTAGE_SECONDS)
CREATE: Final = Deadline(20, outage_seconds=OUTAGE_SECONDS)
SMALL_CALL: Final = Deadline(20)
COMPLETE: Final = Deadline(120, outage_seconds=OUTAGE_SECONDS)
COMPLETE_ONCE: Final = Deadline(COMPLETE.seconds, tries=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    """One key in one bucket. ``client`` is the asyncio S3 client."""

    client: Any
    bucket: str
    key: str

    @property
    def _names(self) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self.key}

    async def put(self, body: io.BytesIO, *, size: int) -> None:
        """The whole object at once. Where no answer comes, its presence and size decide."""

        async def put_object() -> None:
            body.seek(0)
            await self.client.put_object(**self._names, Body=body, ContentType=CONTENT_TYPE)

        try:
            await call_store(TRANSFER, put_object)
            return
        except StoreFailure as unanswered:
            failure = unanswered
        if not failure.is_transient or not await self.is_stored(size):
            raise failure

    async def create_upload(self) -> tuple[str, bool]:
        """The upload's id, and whether tries without an answer may have left others behind."""
        tries = 0

        async def create() -> str:
            nonlocal tries
            tries += 1
            answer = await self.client.create_multipart_upload(
                **self._names, ContentType=CONTENT_TYPE
            )
            return str(answer["UploadId"])

        return await call_store(CREATE, create), tries > 1

    async def send_part(self, upload_id: str, number: int, body: io.BytesIO) -> str:
        """The part's ETag; every try sends the same bytes."""

        async def upload_part() -> str:
            body.seek(0)
            answer = await self.client.upload_part(
                **self._names, UploadId=upload_id, PartNumber=number, Body=body
            )
            return str(answer["ETag"])

        return await call_store(TRANSFER, upload_part)

    async def complete_upload(self, upload_id: str, etags: list[str], *, size: int) -> None:
        """Where no answer comes, or the upload is gone by then, presence and size decide."""
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]

        async def complete() -> None:
            await self.client.complete_multipart_upload(
                **self._names, UploadId=upload_id, MultipartUpload={"Parts": parts}
            )

        tried, began_at = 0, trio.current_time()
        while True:
            try:
                await call_store(COMPLETE_ONCE, complete)
                return
            except StoreFailure as unanswered:
                failure = unanswered
            is_gone = failure.code == "NoSuchUpload"
            if (failure.is_transient or is_gone) and await self.is_stored(size):
                return
            tried += 1
            if not failure.is_transient or COMPLETE.is_over(tried=tried, began_at=began_at):
                raise failure
            await trio.sleep(back_off(tried - 1))

    async def is_stored(self, size: int) -> bool:
        """Whether the object lies there with this size; False where that cannot be found out."""
        try:
            return await self.size() == size
        except StoreFailure:
            return False

    async def size(self) -> int | None:
        async def head() -> int:
            answer = await self.client.head_object(**self._names)
            return int(answer["ContentLength"])

        try:
            return await call_store(SMALL_CALL, head)
        except StoreFailure as failure:
            if failure.status != 404:
                raise
        return None

    async def abort_upload(self, upload_id: str) -> None:
        async def abort() -> None:
            await self.client.abort_multipart_upload(**self._names, UploadId=upload_id)

        try:
            await call_store(SMALL_CALL, abort)
        except StoreFailure as failure:
            if failure.code != "NoSuchUpload":
                raise

    async def unfinished_uploads(self) -> list[str]:
        """Ids of the uploads of exactly this key."""

        async def list_uploads() -> list[str]:
            found: list[str] = []
            marker: dict[str, str] = {}
            while True:
                page = await self.client.list_multipart_uploads(
                    Bucket=self.bucket, Prefix=self.key, **marker
                )
                uploads = page.get("Uploads", ())
                found += [one["UploadId"] for one in uploads if one["Key"] == self.key]
                if not page.get("IsTruncated") or not uploads or uploads[-1]["Key"] > self.key:
                    return found
                marker = {
                    "KeyMarker": page["NextKeyMarker"],
                    "UploadIdMarker": page["NextUploadIdMarker"],
                }

        return await call_store(SMALL_CALL, list_uploads)

    async def abort_unfinished_uploads(self) -> None:
        for upload_id in await self.unfinished_uploads():
            await self.abort_upload(upload_id)

    async def delete(self) -> None:
        async def delete_object() -> None:
            await self.client.delete_object(**self._names)

        await call_store(SMALL_CALL, delete_object)
