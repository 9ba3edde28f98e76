"""A collector that takes OTLP over HTTP, in threads of the test's own process."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATUS_CODE_ERROR = 2
"""Of ``opentelemetry/proto/trace/v1/trace.proto``."""


@dataclass(frozen=True, slots=True)
class Received:
    """One span: ids in hexadecimal, ``parent_id`` empty for a root."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, object]
    has_failed: bool


@dataclass
class OtlpDouble:
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> list[Received]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - an extra
            ExportTraceServiceRequest,
        )

        found = []
        for body in list(self.bodies):
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                service = str(_values(resource.resource.attributes).get("service.name"))
                for scope in resource.scope_spans:
                    found += [
                        Received(
                            service=service,
                            name=span.name,
                            trace_id=span.trace_id.hex(),
                            span_id=span.span_id.hex(),
                            parent_id=span.parent_span_id.hex(),
                            attributes=_values(span.attributes),
                            has_failed=span.status.code == STATUS_CODE_ERROR,
                        )
                        for span in scope.spans
                    ]
        return found


def _values(attributes: Any) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def otlp_double() -> Iterator[OtlpDouble]:
    double = OtlpDouble()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            double.paths.append(self.path)
            double.headers.append({name.lower(): text for name, text in self.headers.items()})
            double.bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()
