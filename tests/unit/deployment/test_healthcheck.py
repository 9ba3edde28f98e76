"""The container's own check asks where the service listens, and believes only 200."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fetcher.healthcheck import addresses, environment_here, is_healthy
from fetcher.settings import Role, Settings, load_settings
from tests.unit.deployment.files import secrets

BASE = {"APP_ENC_KEY": secrets()["APP_ENC_KEY"]}


@contextmanager
def answering(status: int) -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the library's
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(environment: dict[str, str]) -> Settings:
    return load_settings({**BASE, **environment}, Role.ALL)


@pytest.mark.parametrize(
    ("environment", "manager"),
    [
        ({}, ("127.0.0.1", 4006)),
        ({"SERVER_PORT": "5000"}, ("127.0.0.1", 5000)),
        ({"SERVER_ADDRESS": ":6000"}, ("127.0.0.1", 6000)),
        ({"SERVER_ADDRESS": "0.0.0.0:6000"}, ("127.0.0.1", 6000)),
        ({"SERVER_ADDRESS": "[::]:6000"}, ("127.0.0.1", 6000)),
        ({"SERVER_ADDRESS": "10.1.2.3:6000"}, ("10.1.2.3", 6000)),
        ({"SERVER_ADDRESS": "[::1]:6000"}, ("::1", 6000)),
    ],
)
def test_where_a_manager_is_asked(environment: dict[str, str], manager: tuple[str, int]) -> None:
    assert next(addresses(environment)) == manager
    assert settings(environment).listen_address.rpartition(":")[2] == str(manager[1])


@pytest.mark.parametrize("text", ["", "0", "-3", "65536", "9090", " 9090 "])
def test_where_a_worker_is_asked_is_where_it_listens(text: str) -> None:
    environment = {"HEALTH_PORT": text}
    assert list(addresses(environment))[1] == (
        "127.0.0.1",
        settings(environment).health_address_port,
    )


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (404, False)])
def test_a_managers_answer_decides(status: int, healthy: bool) -> None:
    with answering(status) as (port, asked), answering(200) as (worker, not_asked):
        given = {"SERVER_ADDRESS": f"127.0.0.1:{port}", "HEALTH_PORT": str(worker)}
        assert is_healthy(given) is healthy
        assert (asked, not_asked) == (["/health"], [])


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_where_no_manager_listens_the_worker_is_asked(
    status: int, healthy: bool, closed_port: int
) -> None:
    with answering(status) as (port, asked):
        given = {"SERVER_ADDRESS": f":{closed_port}", "HEALTH_PORT": str(port)}
        assert is_healthy(given) is healthy
        assert asked == ["/health"]


def test_it_asks_where_a_file_env_lets_the_service_listen(tmp_path: Path) -> None:
    assert environment_here({}, tmp_path) == {}
    (tmp_path / ".env").write_text("SERVER_PORT=5000\nHEALTH_PORT=5001\n", encoding="utf-8")
    found = environment_here({"HEALTH_PORT": "6001"}, tmp_path)
    assert [port for _, port in addresses(found)] == [5000, 6001]
    production = {"ENV_NAME": "production"}
    assert environment_here(production, tmp_path) == production


def test_run_beside_a_file_env_it_asks_there(tmp_path: Path, closed_port: int) -> None:
    with answering(200) as (port, asked):
        lines = f"SERVER_PORT={port}\nHEALTH_PORT={closed_port}\n"
        (tmp_path / ".env").write_text(lines, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "fetcher.healthcheck"],
            cwd=tmp_path,
            env={"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    assert (ended.returncode, asked) == (0, ["/health"])


def test_where_nobody_listens_it_is_not_healthy(closed_port: int) -> None:
    assert not is_healthy({"SERVER_PORT": str(closed_port), "HEALTH_PORT": str(closed_port)})


def test_who_answers_no_http_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def hang_up() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)

        thread = threading.Thread(target=hang_up)
        thread.start()
        with answering(200) as (worker, asked):
            assert not is_healthy({"SERVER_PORT": str(port), "HEALTH_PORT": str(worker)})
        thread.join()
    assert asked == []
