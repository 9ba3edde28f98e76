"""A Tenant Manager that knows what a test told it: a process of its own, real HTTP.

It speaks the documented paths and payloads (spec configuration 11.4). The paths below ``/_test``
are the test's own doors, no part of the protocol: tenants are put, failures ordered, requests read.

``python -m tests.servers.tenant_manager --port N`` serves until it is killed.
"""

import argparse
import json
import re
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.servers.processes import free_port, running

ROOT: Final = Path(__file__).resolve().parents[2]
API_KEY: Final = "key-of-the-tenant-manager-double"

Json = Mapping[str, Any]

BAD_JSON: Final[Json] = {"status": 200, "body": '{"databases":'}
SILENT: Final[Json] = {"silent": True}
"""It takes the request and never answers."""
HANG_UP: Final[Json] = {"hang_up": True}
CUT: Final[Json] = {"status": 200, "body": '{"id":"acme"}', "cut": True}
"""The connection ends in the middle of the body."""
DENIED: Final[Json] = {"status": 403, "body": "no"}


def status(code: int, body: str = "") -> Json:
    """Every answer has this status."""
    return {"status": code, "body": body}


def slow(seconds: float) -> Json:
    """The right answer, so much later."""
    return {"slow": seconds}


def answers(value: object) -> Json:
    """200 with this JSON, whatever was asked."""
    return {"status": 200, "body": json.dumps(value)}


def mongo_at(uri: str, database: str) -> dict[str, Any]:
    """The ``mongodb`` object of a database of the server at ``uri``."""
    parts = urlsplit(uri)
    return {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or 27017,
        "database": database,
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "authSource": parse_qs(parts.query).get("authSource", [""])[0],
        "directConnection": True,
        "maxPoolSize": 10,
        "tls": False,
    }


def broker_at(url: str, vhost: str) -> dict[str, Any]:
    """The ``rabbitmq`` object of a virtual host of the broker at ``url``."""
    parts = urlsplit(url)
    tls = parts.scheme == "amqps"
    return {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or (5671 if tls else 5672),
        "vhost": vhost,
        "username": unquote(parts.username or "guest"),
        "password": unquote(parts.password or "guest"),
        "tls": tls,
    }


@dataclass(frozen=True, slots=True)
class TenantManagerDouble:
    """The test's hand on the process. Its methods block."""

    address: str
    api_key: str = API_KEY

    def put(
        self,
        tenant_id: str,
        *,
        mongo: Json | None = None,
        broker: Json | None = None,
        status: str = "active",
        modules: Json | None = None,
        ledger: Json | None = None,
        more: Json | None = None,
    ) -> None:
        """Make or change a tenant.

        Args:
            mongo: the database of our service (:func:`mongo_at`); without it there is none.
            broker: its virtual host (:func:`broker_at`), as ``messaging.rabbitmq``.
            status: of another one than ``active`` the tenant is not listed, and asking for its
                connections is refused (``denied``: without saying why).
            modules: brokers by module (``fetcher-manager``, ``fetcher-worker``), as newer servers
                send them.
            ledger: the databases of the service ``ledger`` by module, each with ``postgresql`` or
                ``mongodb``; without it the tenant does not use that service.
            more: members of our service's answer, in place of what was made.
        """
        ours = _connections(tenant_id, "fetcher", _databases(mongo), broker, modules)
        services = {"fetcher": ours | dict(more or {})}
        if ledger is not None:
            services["ledger"] = _connections(tenant_id, "ledger", ledger)
        order = {"status": status, "services": services}
        self._call("PUT", f"tenants/{quote(tenant_id, safe='')}", order)

    def remove(self, tenant_id: str) -> None:
        """It is unknown from now on."""
        self._call("DELETE", f"tenants/{quote(tenant_id, safe='')}")

    def fail(self, mode: Json | None, *, on: str = "/") -> None:
        """Answer like this from now on where ``on`` is a part of the path; None: rightly again.

        The mode that was ordered last for a part of the path counts; of many parts, the longest.
        """
        self._call("PUT", "modes", {"on": on, "mode": mode})

    def requests(self, part: str = "/") -> Sequence[dict[str, Any]]:
        """What was asked, in order: ``path`` with its query, as it came, and ``headers`` (names in
        lower case); those whose path has the part."""
        asked: list[dict[str, Any]] = json.loads(self._call("GET", "requests"))
        return [each for each in asked if part in each["path"]]

    def forget_requests(self) -> None:
        self._call("DELETE", "requests")

    def _call(self, method: str, door: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - ours, http
            f"{self.address}/_test/{door}", data=data, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours, http
            read: bytes = answer.read()
            return read


@contextmanager
def tenant_manager_double(folder: Path) -> Iterator[TenantManagerDouble]:
    """Run it until the block ends; its output goes to files of the folder."""
    port = free_port()
    double = TenantManagerDouble(f"http://127.0.0.1:{port}")
    command = [sys.executable, "-m", "tests.servers.tenant_manager", "--port", str(port)]
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}"}
    with running(command, environment=paths, folder=folder, name="tenant-manager") as process:
        process.wait_until_answers(f"{double.address}/_test/requests", deadline_seconds=20)
        yield double


def _databases(mongo: Json | None) -> Json:
    return {"fetcher": {"mongodb": mongo}} if mongo is not None else {}


def _connections(
    tenant_id: str,
    service: str,
    databases: Json,
    broker: Json | None = None,
    modules: Json | None = None,
) -> dict[str, Any]:
    """The answer of spec configuration 11.4 b."""
    answer: dict[str, Any] = {
        "id": tenant_id,
        "tenantSlug": tenant_id.lower(),
        "tenantName": f"Tenant {tenant_id}",
        "service": service,
        "status": "active",
        "isolationMode": "isolated",
        "databases": databases,
        "connectionSettings": {"maxOpenConns": 20, "maxIdleConns": 5, "statementTimeout": "30s"},
        "createdAt": "2026-01-10T08:00:00Z",
        "updatedAt": "2026-02-01T09:30:00Z",
    }
    if broker is not None:
        answer["messaging"] = {"rabbitmq": broker}
    if modules is not None:
        answer["rabbitmq"] = modules
    return answer


class _State:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tenants: dict[str, dict[str, Any]] = {}
        self.modes: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []

    def mode_of(self, path: str) -> dict[str, Any]:
        with self.lock:
            parts = [part for part in self.modes if part in path]
            return self.modes[max(parts, key=len)] if parts else {}

    def answer_to(self, path: str, key: str | None) -> tuple[int, object]:
        parts = urlsplit(path)
        if key != API_KEY:
            return HTTPStatus.UNAUTHORIZED, {"code": "401", "error": "invalid api key"}
        if parts.path == "/v1/tenants/active":
            return HTTPStatus.OK, self._active(parse_qs(parts.query).get("service", [""])[0])
        found = _CONNECTIONS.fullmatch(parts.path)
        if found is None:
            return HTTPStatus.NOT_FOUND, {"code": "404", "error": "no such path"}
        return self._connections(unquote(found[1]), unquote(found[2]))

    def _active(self, service: str) -> list[dict[str, str]]:
        with self.lock:
            return [
                {"id": tenant_id, "name": f"Tenant {tenant_id}", "status": "active"}
                for tenant_id, tenant in self.tenants.items()
                if tenant["status"] == "active" and service in tenant["services"]
            ]

    def _connections(self, tenant_id: str, service: str) -> tuple[int, object]:
        with self.lock:
            tenant = self.tenants.get(tenant_id)
        if tenant is None or service not in tenant["services"]:
            return HTTPStatus.NOT_FOUND, {"code": "404", "error": "tenant not found"}
        if tenant["status"] == "denied":
            return HTTPStatus.FORBIDDEN, {"code": "403", "error": "access denied"}
        if tenant["status"] != "active":
            return HTTPStatus.FORBIDDEN, {
                "code": "TS-SUSPENDED",
                "error": f"service {tenant['status']} for tenant",
                "status": tenant["status"],
            }
        return HTTPStatus.OK, tenant["services"][service]


_CONNECTIONS: Final = re.compile(r"/v1/tenants/([^/]+)/associations/([^/]+)/connections")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: _State

    def do_GET(self) -> None:
        if self.path == "/_test/requests":
            with self.state.lock:
                asked = list(self.state.asked)
            self._send(200, json.dumps(asked))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.state.lock:
            self.state.asked.append({"path": self.path, "headers": headers})
        self._answer(self.state.mode_of(self.path), headers.get("x-api-key"))

    def do_PUT(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        with self.state.lock:
            if self.path == "/_test/modes":
                self.state.modes.pop(order["on"], None)
                if order["mode"] is not None:
                    self.state.modes[order["on"]] = order["mode"]
            else:
                self.state.tenants[self._tenant()] = order
        self._send(204)

    def do_DELETE(self) -> None:
        with self.state.lock:
            if self.path == "/_test/requests":
                self.state.asked.clear()
            else:
                self.state.tenants.pop(self._tenant(), None)
        self._send(204)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nobody reads it."""

    def _tenant(self) -> str:
        return unquote(self.path.removeprefix("/_test/tenants/"))

    def _answer(self, mode: Json, key: str | None) -> None:
        if mode.get("silent"):
            self.connection.recv(1)
        if mode.get("silent") or mode.get("hang_up"):
            self.close_connection = True
            return
        time.sleep(mode.get("slow", 0))
        if "status" in mode:
            self._send(mode["status"], mode.get("body", ""), cut=mode.get("cut", False))
        else:
            code, value = self.state.answer_to(self.path, key)
            self._send(code, json.dumps(value))

    def _send(self, code: int, body: str = "", *, cut: bool = False) -> None:
        data = body.encode()
        self.send_response(code)
        if code != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if cut:
            self.wfile.write(data[:-1])
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(data)


def serve(port: int) -> None:
    """Until the process is killed."""
    _Handler.state = _State()
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("--port", type=int, required=True)
    serve(_parser.parse_args().port)
