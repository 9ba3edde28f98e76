"""An S3 server that answers rightly and remembers little: for results larger than a test server for
S3 bears.

It knows what an upload asks for (path style, any credentials, any bucket), and checks no digest. Of
an object it keeps the size; with ``keeps`` also the bytes, in files.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from tests.servers.addresses import S3Access

CHUNK_BYTES: Final = 1024 * 1024
_PART_NUMBER: Final = re.compile(rb"<PartNumber>(\d+)</PartNumber>")


@dataclass(slots=True)
class Part:
    size: int
    file: Path | None


@dataclass(slots=True)
class S3Sink:
    """``objects`` by key; ``uploads`` are those that are not finished, by their ids."""

    port: int = 0
    keeps: Path | None = None
    objects: dict[str, list[Part]] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, Part]]] = field(default_factory=dict)
    received_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _made: int = 0

    @property
    def access(self) -> S3Access:
        return self.access_through(self.port)

    def access_through(self, port: int) -> S3Access:
        """The same server behind a proxy."""
        return S3Access(
            endpoint=f"http://127.0.0.1:{port}", access_key="sink", secret_key="sink-secret"
        )

    def size(self, key: str) -> int:
        return sum(part.size for part in self.objects[key])

    def content(self, key: str) -> bytes:
        """Of an object whose bytes were kept."""
        files = [part.file for part in self.objects[key]]
        return b"".join(file.read_bytes() for file in files if file is not None)

    def new_name(self) -> str:
        with self._lock:
            self._made += 1
            return f"{self._made}"

    def receive(self, body: Iterator[bytes]) -> Part:
        file = self.keeps / self.new_name() if self.keeps is not None else None
        part = Part(0, file)
        kept = file.open("wb") if file is not None else None
        try:
            for chunk in body:
                part.size += len(chunk)
                with self._lock:
                    self.received_bytes += len(chunk)
                if kept is not None:
                    kept.write(chunk)
        finally:
            if kept is not None:
                kept.close()
        return part

    def complete(self, upload_id: str, wanted: list[int]) -> None:
        """Raise KeyError for an upload or a part that is not there."""
        key, parts = self.uploads[upload_id]
        self.objects[key] = [parts[number] for number in wanted]
        del self.uploads[upload_id]


@contextmanager
def s3_sink(keeps: Path | None = None) -> Iterator[S3Sink]:
    """Served by threads of this process, until the block ends."""
    sink = S3Sink(keeps=keeps)

    class Handler(_Handler):
        pass

    Handler.sink = sink
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        sink.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, name="S3 sink")
        thread.start()
        try:
            yield sink
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sink: S3Sink

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        if not key:
            self._answer(200)
        elif key in self.sink.objects:
            self.send_response(200)
            self.send_header("Content-Length", str(self.sink.size(key)))
            self.send_header("ETag", '"sink"')
            self.end_headers()
        else:
            self._answer(404)

    def do_GET(self) -> None:
        key, query = self._asked()
        if "uploads" in query:
            self._answer(200, self._uploads(query.get("prefix", [""])[0]))
        elif key in self.sink.objects:
            self._answer(200, self.sink.content(key))
        else:
            self._refuse(404, "NoSuchKey")

    def do_PUT(self) -> None:
        key, query = self._asked()
        part = self.sink.receive(self._body())
        if "uploadId" not in query:
            self.sink.objects[key] = [part]
        elif query["uploadId"][0] in self.sink.uploads:
            self.sink.uploads[query["uploadId"][0]][1][int(query["partNumber"][0])] = part
        else:
            return self._refuse(404, "NoSuchUpload")
        return self._answer(200)

    def do_POST(self) -> None:
        key, query = self._asked()
        body = b"".join(self._body())
        if "uploads" in query:
            name = f"upload-{self.sink.new_name()}"
            self.sink.uploads[name] = (key, {})
            self._answer(200, _tagged("InitiateMultipartUploadResult", UploadId=name, Key=key))
            return
        try:
            self.sink.complete(query["uploadId"][0], [*map(int, _PART_NUMBER.findall(body))])
        except KeyError:
            self._refuse(404, "NoSuchUpload")
        else:
            self._answer(200, _tagged("CompleteMultipartUploadResult", Key=key, ETag="sink"))

    def do_DELETE(self) -> None:
        key, query = self._asked()
        if "uploadId" in query:
            self.sink.uploads.pop(query["uploadId"][0], None)
        else:
            self.sink.objects.pop(key, None)
        self._answer(204)

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        _, _, key = unquote(parts.path).lstrip("/").partition("/")
        return key, parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> Iterator[bytes]:
        left = int(self.headers.get("Content-Length") or 0)
        while left and (chunk := self.rfile.read1(min(left, CHUNK_BYTES))):
            left -= len(chunk)
            yield chunk

    def _uploads(self, prefix: str) -> bytes:
        found = "".join(
            f"<Upload><Key>{key}</Key><UploadId>{name}</UploadId></Upload>"
            for name, (key, _) in self.sink.uploads.items()
            if key.startswith(prefix)
        )
        return f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>".encode()

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, _tagged("Error", Code=code))

    def _answer(self, status: int, body: bytes = b"") -> None:
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"sink"')
            self.end_headers()
            self.wfile.write(body)


def _tagged(name: str, **members: str) -> bytes:
    inner = "".join(f"<{member}>{value}</{member}>" for member, value in members.items())
    return f"<{name}>{inner}</{name}>".encode()
