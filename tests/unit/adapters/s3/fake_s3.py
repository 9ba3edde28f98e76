"""A bucket in memory behind the calls of the asyncio client, with faults to order."""

import io
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError


@dataclass(frozen=True, slots=True)
class Fault:
    """``after`` the call has taken effect its answer is lost; otherwise it takes no effect."""

    error: Exception
    after: bool = False


def answered(code: str, status: int, operation: str = "PutObject") -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "canary-secret"},
            "ResponseMetadata": {"HTTPStatusCode": status},  # type: ignore[typeddict-item]  # the rest is never read
        },
        operation,
    )


@dataclass
class FakeS3Client:
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    calls: list[str] = field(default_factory=list)
    sent_parts: list[tuple[int, bytes]] = field(default_factory=list)
    ids_made: int = 0

    async def put_object(self, **call: Any) -> dict[str, Any]:
        body: io.BytesIO = call["Body"]
        data = body.read()
        assert call["ContentType"] == "application/octet-stream"
        return self._do("put_object", lambda: self._put(call["Key"], data))

    async def create_multipart_upload(self, **call: Any) -> dict[str, Any]:
        assert call["ContentType"] == "application/octet-stream"
        return self._do("create_multipart_upload", lambda: self._create(call["Key"]))

    async def upload_part(self, **call: Any) -> dict[str, Any]:
        body: io.BytesIO = call["Body"]
        data = body.read()
        self.sent_parts.append((call["PartNumber"], data))
        return self._do(
            "upload_part", lambda: self._part(call["UploadId"], call["PartNumber"], data)
        )

    async def complete_multipart_upload(self, **call: Any) -> dict[str, Any]:
        parts = call["MultipartUpload"]["Parts"]
        return self._do(
            "complete_multipart_upload", lambda: self._complete(call["UploadId"], parts)
        )

    async def abort_multipart_upload(self, **call: Any) -> dict[str, Any]:
        return self._do("abort_multipart_upload", lambda: self._abort(call["UploadId"]))

    async def list_multipart_uploads(self, **call: Any) -> dict[str, Any]:
        found = [
            {"Key": key, "UploadId": upload_id}
            for upload_id, (key, _parts) in self.uploads.items()
            if key.startswith(call["Prefix"])
        ]
        return self._do("list_multipart_uploads", lambda: {"Uploads": found} if found else {})

    async def head_object(self, **call: Any) -> dict[str, Any]:
        return self._do("head_object", lambda: self._head(call["Key"]))

    async def delete_object(self, **call: Any) -> dict[str, Any]:
        return self._do("delete_object", lambda: self._delete(call["Key"]))

    async def head_bucket(self, **call: Any) -> dict[str, Any]:
        return self._do("head_bucket", dict)

    def _do(self, operation: str, effect: Any) -> dict[str, Any]:
        self.calls.append(operation)
        fault = self.faults[operation].pop(0) if self.faults[operation] else None
        if fault is None:
            return dict(effect())
        if fault.after:
            effect()
        raise fault.error

    def _put(self, key: str, data: bytes) -> dict[str, Any]:
        self.objects[key] = data
        return {}

    def _create(self, key: str) -> dict[str, Any]:
        self.ids_made += 1
        upload_id = f"upload {self.ids_made}"
        self.uploads[upload_id] = (key, {})
        return {"UploadId": upload_id}

    def _part(self, upload_id: str, number: int, data: bytes) -> dict[str, Any]:
        self._upload(upload_id)[1][number] = data
        return {"ETag": f"etag {number}"}

    def _complete(self, upload_id: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
        key, data = self._upload(upload_id)
        assert parts == [
            {"PartNumber": number, "ETag": f"etag {number}"} for number in range(1, len(data) + 1)
        ]
        self.objects[key] = b"".join(data[number] for number in sorted(data))
        del self.uploads[upload_id]
        return {}

    def _abort(self, upload_id: str) -> dict[str, Any]:
        self._upload(upload_id)
        del self.uploads[upload_id]
        return {}

    def _head(self, key: str) -> dict[str, Any]:
        if key not in self.objects:
            raise answered("404", 404, "HeadObject")
        return {"ContentLength": len(self.objects[key])}

    def _delete(self, key: str) -> dict[str, Any]:
        self.objects.pop(key, None)
        return {}

    def _upload(self, upload_id: str) -> tuple[str, dict[int, bytes]]:
        if upload_id not in self.uploads:
            raise answered("NoSuchUpload", 404)
        return self.uploads[upload_id]
