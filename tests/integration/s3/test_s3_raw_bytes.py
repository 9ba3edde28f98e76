"""What really arrives at a store that keeps the raw body of a request: the object, and no more."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.bridge import open_asyncio

CREATED = (
    b'<?xml version="1.0" encoding="UTF-8"?><InitiateMultipartUploadResult>'
    b"<Bucket>b</Bucket><Key>k</Key><UploadId>u-1</UploadId></InitiateMultipartUploadResult>"
)
COMPLETED = (
    b'<?xml version="1.0" encoding="UTF-8"?><CompleteMultipartUploadResult>'
    b'<Bucket>b</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>'
)
PART_BYTES = 8 * 1024 * 1024


class Recorder(ThreadingHTTPServer):
    """Stores what arrives, as a simple store does that knows no checksum trailers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.puts: list[tuple[str, bytes, dict[str, str]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.puts.append((self.path, body, headers))
        self._answer(b"", ETag='"e"')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(CREATED if "uploads" in self.path else COMPLETED)

    def _answer(self, body: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
        """Nothing on standard error."""


@contextmanager
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(lambda _: None):
        yield


@pytest.mark.parametrize("size", [0, 1, 100_000, 2 * PART_BYTES + 5])
async def test_the_raw_bodies_are_the_object_byte_for_byte(room: None, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    with recorder() as server:
        location = S3Location(
            bucket="b",
            endpoint=f"http://127.0.0.1:{server.server_address[1]}",
            access_key_id="AK",
            secret_key="SK",
            path_style=True,
        )
        async with open_s3(location) as store, store.upload("external-data/k.json") as upload:
            await upload.write(data)
            assert await upload.complete() == size
    assert b"".join(body for _, body, _ in server.puts) == data
    for path, body, headers in server.puts:
        assert path.startswith("/b/external-data/k.json")
        assert headers["content-length"] == str(len(body))
        assert "content-encoding" not in headers
        assert "x-amz-trailer" not in headers
        assert "transfer-encoding" not in headers
    if size > PART_BYTES:
        assert [len(body) for _, body, _ in server.puts] == [PART_BYTES, PART_BYTES, 5]
