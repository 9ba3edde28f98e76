"""The real command behind an authorization service, and behind one token."""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.e2e.cluster import embedded
from tests.servers.auth_double import AUTHORIZED, HANG_UP, REFUSED, auth_double
from tests.unit.adapters.auth.keys import an_ed_key

CONNECTIONS = "/v1/management/connections"
CANARY = an_ed_key().token({"type": "normal-user", "owner": "acme", "sub": "canary"})
ACCESS_TOKEN = "canary-token-9f3a7c"


def called(
    port: int, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, body or None, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_every_call_is_judged_by_the_service(tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {CANARY}"}
    with auth_double(tmp_path) as service:
        service.answers(AUTHORIZED)
        with embedded(
            tmp_path, PLUGIN_AUTH_ENABLED="true", PLUGIN_AUTH_ADDRESS=service.address
        ) as (process, api):
            assert len(service.requests("/health")) == 1
            assert called(api.port, "GET", CONNECTIONS) == (401, b"Missing Token")
            assert called(api.port, "POST", CONNECTIONS, body=b"{") == (401, b"Missing Token")
            assert called(api.port, "GET", CONNECTIONS, {"Authorization": "Bearer x"}) == (
                401,
                b"Unauthorized",
            )
            status, body = called(api.port, "GET", CONNECTIONS, bearer)
            assert (status, json.loads(body)["items"]) == (200, [])
            [asked] = service.requests()
            assert json.loads(asked["body"]) == {
                "sub": "acme/canary",
                "resource": "connections",
                "action": "get",
            }
            service.answers(REFUSED)
            assert called(api.port, "GET", CONNECTIONS, bearer) == (403, b"Forbidden")
            service.answers(HANG_UP)
            assert called(api.port, "GET", CONNECTIONS, bearer) == (503, b"Service Unavailable")
            for path in ("/health", "/readyz", "/metrics", "/version", "/openapi.json"):
                assert called(api.port, "GET", path)[0] == 200
            metrics = called(api.port, "GET", "/metrics")[1].decode()
        log = process.log() + process.output_path.read_text()
    assert "authorization_unavailable" in log
    for secret in (CANARY, *CANARY.split(".")):
        assert secret not in log + metrics


def test_service_that_is_away_stops_no_start_and_lets_nobody_in(tmp_path: Path) -> None:
    with embedded(
        tmp_path, PLUGIN_AUTH_ENABLED="true", PLUGIN_AUTH_ADDRESS="http://127.0.0.1:1"
    ) as (process, api):
        assert "auth_service_not_healthy" in process.log()
        bearer = {"Authorization": f"Bearer {CANARY}"}
        assert called(api.port, "GET", CONNECTIONS, bearer) == (503, b"Service Unavailable")


def test_one_token_from_a_file_lets_in_who_has_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{ACCESS_TOKEN}\n")
    with embedded(tmp_path, FETCHER_ACCESS_TOKEN_FILE=str(file)) as (process, api):
        assert called(api.port, "GET", CONNECTIONS) == (401, b"Missing Token")
        large = bytes(3 * 1024 * 1024)
        assert called(api.port, "POST", CONNECTIONS, body=large) == (401, b"Missing Token")
        wrong = {"Authorization": f"Bearer {ACCESS_TOKEN}x"}
        assert called(api.port, "GET", CONNECTIONS, wrong) == (401, b"Unauthorized")
        right = {"Authorization": f"Bearer {ACCESS_TOKEN}"}
        assert called(api.port, "GET", CONNECTIONS, right)[0] == 200
        with closing(http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)) as kept:
            kept.connect()
            ours = kept.sock.getsockname()
            for headers, status in (({}, 401), (right, 200), (wrong, 401), (right, 200)):
                kept.request("GET", CONNECTIONS, headers=headers)
                answer = kept.getresponse()
                answer.read()
                assert (answer.status, kept.sock.getsockname()) == (status, ours)
    assert ACCESS_TOKEN not in process.log()
