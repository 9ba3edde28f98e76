"""A store that keeps what arrives as it is: a simple one, which knows no checksum trailers."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CREATED = (
    b'<?xml version="1.0" encoding="UTF-8"?><InitiateMultipartUploadResult>'
    b"<Bucket>b</Bucket><Key>k</Key><UploadId>u-1</UploadId></InitiateMultipartUploadResult>"
)
COMPLETED = (
    b'<?xml version="1.0" encoding="UTF-8"?><CompleteMultipartUploadResult>'
    b'<Bucket>b</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>'
)


class Recorder(ThreadingHTTPServer):
    """Stores what arrives, as a simple store does that knows no checksum trailers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.puts: list[tuple[str, bytes, dict[str, str]]] = []
        self.heads = 0


class Handler(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.puts.append((self.path, body, headers))
        self._answer(b"", ETag='"e"')

    def do_HEAD(self) -> None:
        self.server.heads += 1
        self._answer(b"")

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
def recorder(tls: ssl.SSLContext | None = None) -> Iterator[Recorder]:
    with Recorder() as server:
        if tls is not None:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
