"""An authorization service that answers what a test wants: a process of its own, real HTTP.

It speaks the documented paths, ``GET /health`` and ``POST /v1/authorize``, and serves keys at
``GET /keys``. What it answers next is put to ``/script``, what it was asked is read at
``/requests``; both are the test's own doors, no part of the protocol.

``python -m tests.servers.auth_double PORT`` serves until it is killed.
"""

import json
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.servers.processes import free_port, running

AUTHORIZED: Final = {"status": 200, "body": '{"authorized":true}'}
REFUSED: Final = {"status": 200, "body": '{"authorized":false}'}
SILENT: Final = {"silent": True}
CUT: Final = {"status": 200, "body": '{"authorized":true}', "cut": True}
HANG_UP: Final = {"hang_up": True}

ROOT: Final = Path(__file__).resolve().parents[2]


def only(*permissions: str) -> dict[str, Any]:
    """The caller may do these, each ``resource/action``, and nothing else."""
    return {"only": permissions}


@dataclass(frozen=True, slots=True)
class AuthDouble:
    """The test's hand on the process."""

    address: str

    def answers(self, *script: Any, path: str = "/v1/authorize") -> None:
        """Each answer once, the last one from then on; what was asked is forgotten.

        An answer has ``status``, ``body`` and ``headers``, or says how it goes wrong.
        """
        _call(f"{self.address}/script", {"path": path, "answers": list(script)})

    def requests(self, path: str = "/v1/authorize") -> Sequence[dict[str, Any]]:
        """``headers`` (names in lower case), ``body``, and the peer's ``port`` of each."""
        asked = json.loads(_call(f"{self.address}/requests"))
        return [each for each in asked if each["path"] == path]


@contextmanager
def auth_double(folder: Path) -> Iterator[AuthDouble]:
    """Run it until the block ends."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "tests.servers.auth_double", str(port)]
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}"}
    with running(command, environment=paths, folder=folder, name="auth") as process:
        process.wait_until_answers(f"{address}/health", deadline_seconds=20)
        yield AuthDouble(address)


def _call(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(url, data=data, timeout=10) as answer:  # noqa: S310 - ours, http
        read: bytes = answer.read()
        return read


class _State:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.scripts: dict[str, list[dict[str, Any]]] = {"/health": [{"body": "healthy"}]}
        self.asked: list[dict[str, Any]] = []

    def next_answer(self, path: str) -> dict[str, Any]:
        with self.lock:
            script = self.scripts.get(path) or [{"status": 404, "body": "no such path"}]
            return script.pop(0) if len(script) > 1 else script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: _State

    def do_GET(self) -> None:
        if self.path == "/requests":
            self._send({"body": json.dumps(self.state.asked)})
        else:
            self._answer()

    def do_POST(self) -> None:
        if self.path != "/script":
            self._answer()
            return
        order = json.loads(self._body())
        with self.state.lock:
            self.state.scripts[order["path"]] = order["answers"]
            self.state.asked.clear()
        self._send({})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nobody reads it."""

    def _answer(self) -> None:
        asked = {
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self._body().decode(),
            "port": self.client_address[1],
        }
        with self.state.lock:
            self.state.asked.append(asked)
        answer = self.state.next_answer(self.path)
        if "only" in answer:
            wanted = json.loads(str(asked["body"]))
            is_allowed = f"{wanted['resource']}/{wanted['action']}" in answer["only"]
            answer = AUTHORIZED if is_allowed else REFUSED
        if answer.get("silent"):
            self.connection.recv(1)
        if answer.get("silent") or answer.get("hang_up"):
            self.close_connection = True
            return
        self._send(answer)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, answer: dict[str, Any]) -> None:
        body = (answer.get("body", "") * answer.get("times", 1)).encode("latin-1")
        self.send_response(answer.get("status", 200))
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if answer.get("cut"):
            self.wfile.write(body[:-1])
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(body)


def serve(port: int) -> None:
    """Until the process is killed."""
    _Handler.state = _State()
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
