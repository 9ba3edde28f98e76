"""The demo's own server process, and a plain HTTP client for it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 30.0
STOP_SECONDS = 90.0
ANSWER_SECONDS = 60.0
DEFAULT_PORT = 4006
PRODUCT = "demo-shop"


class DemoFailed(Exception):
    """The demo cannot go on; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Api:
    """Calls with JSON in and out; an unexpected status is a DemoFailed."""

    port: int

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, expect: int = 200
    ) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            headers = {"X-Product-Name": PRODUCT, "Content-Type": "application/json"}
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != expect:
            raise DemoFailed(f"{method} {path}: expected {expect}, got {answer.status}: {text}")
        return json.loads(text)

    def is_healthy(self) -> bool:
        try:
            self.call("GET", "/health")
        except (OSError, DemoFailed, http.client.HTTPException):
            return False
        return True

    @contextmanager
    def event_stream(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Ended jobs, told by the server as they end; opened before the job is posted."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", "/v1/fetcher/events", headers={"X-Product-Name": PRODUCT})
            answer = connection.getresponse()
            if answer.status != 200:
                raise DemoFailed(f"GET /v1/fetcher/events: got {answer.status}")
            yield read_events(answer)
        finally:
            connection.close()


def read_events(answer: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
    data: list[str] = []
    while raw := answer.readline():
        line = raw.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").strip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data.clear()
    raise DemoFailed("the event stream ended before the job did")


@contextmanager
def running_server(folder: Path) -> Iterator[Api]:
    """`fetcher --role=all` in this folder, without a setting; stopped cleanly at the end.

    The one exception: where the default port is taken, SERVER_ADDRESS names a free one, and the
    drain window is shortened, since no load balancer has to be waited for.
    """
    port = DEFAULT_PORT if is_free(DEFAULT_PORT) else free_port()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")
    }
    environment["READYZ_DRAIN_DELAY_SEC"] = "0.2"
    if port != DEFAULT_PORT:
        environment["SERVER_ADDRESS"] = f"127.0.0.1:{port}"
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "fetcher", "--role=all"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        api = Api(port)
        wait_until_healthy(process, api, log)
        yield api
        process.send_signal(signal.SIGTERM)
        code = process.wait(STOP_SECONDS)
        if code != 0:
            raise DemoFailed(f"the server ended with code {code}: {tail(log)}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def wait_until_healthy(process: subprocess.Popen[bytes], api: Api, log: Path) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while not api.is_healthy():
        if process.poll() is not None:
            raise DemoFailed(f"the server ended at once: {tail(log)}")
        if time.monotonic() > give_up_at:
            raise DemoFailed(f"the server is not healthy after {START_SECONDS:g} s: {tail(log)}")
        time.sleep(0.1)


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
