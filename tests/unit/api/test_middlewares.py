"""Request ids, access log, metrics, CORS, unknown routes, crashes: spec rest-api 2 and 17.6."""

import threading
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from fetcher.api import routing
from fetcher.api.observation import effective_request_id
from fetcher.api.services import HttpSettings
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId, new_connection_id
from fetcher_engine import SourceFailure, Stage
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import CONNECTIONS, JOBS, Answered, a_body, an_api, an_api_with

UNKNOWN_JOB = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"

# --- request ids -----------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [None, "", "  ", "null", "nil", "x" * 129, "a\tb", "é", "\r\n"])
def test_unusable_request_id_is_replaced_by_a_uuid(sent: str | None) -> None:
    assert uuid.UUID(effective_request_id(sent)).version == 4


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc", "abc"), (" abc ", "abc"), ("a\r\nb\0c", "abc"), ("x" * 128, "x" * 128)],
)
def test_request_id_is_cleaned_and_kept(sent: str, kept: str) -> None:
    assert effective_request_id(sent) == kept


@pytest.mark.parametrize(
    "path", ["/health", CONNECTIONS, f"{CONNECTIONS}/nope", "/v1/nope", "/openapi.json"]
)
async def test_request_id_is_echoed_on_every_answer(path: str) -> None:
    answered = await an_api().get(path, {"X-Request-Id": "abc"})
    assert answered.headers.getlist("X-Request-Id") == ["abc"]


# --- routes ----------------------------------------------------------------------------------


async def test_unknown_path_is_told_in_the_framework_s_words() -> None:
    answered = await an_api().get("/v1/nope")
    assert answered.status == 404
    assert answered.json == {
        "code": 404,
        "title": "request_failed",
        "message": "Cannot GET /v1/nope",
        "errorCode": "route_not_found",
    }
    assert answered.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", CONNECTIONS, "GET, HEAD, POST"),
        ("OPTIONS", CONNECTIONS, "GET, HEAD, POST"),
        ("DELETE", f"{JOBS}/{UNKNOWN_JOB}", "GET, HEAD"),
        ("PUT", JOBS, "GET, HEAD, POST"),
        ("GET", f"{JOBS}/{UNKNOWN_JOB}/cancel", "POST"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
async def test_other_method_on_a_known_path_is_told_what_is_allowed(
    method: str, path: str, allow: str
) -> None:
    answered = await an_api().call(method, path)
    assert answered.status == 405
    assert answered.json == {
        "code": 405,
        "title": "request_failed",
        "message": "Method Not Allowed",
        "errorCode": "method_not_allowed",
    }
    assert answered.headers["Allow"] == allow


@pytest.mark.parametrize("path", ["/health", "/metrics", "/version", "/openapi.json", CONNECTIONS])
async def test_head_is_answered_wherever_get_is(path: str) -> None:
    assert (await an_api().call("HEAD", path)).status == 200


@pytest.mark.parametrize("path", ["/v1//fetcher", "/v1/fetcher/a/b", "/V1/fetcher/x", "/"])
async def test_paths_are_taken_exactly(path: str) -> None:
    assert (await an_api().get(path)).status == 404


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/v1/fetcher/%30195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b", 400),
        (b"/v1/fetcher/a%2Fb", 400),
        (b"/v1/fetcher/{0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b}", 404),
        (b"/v1/%66etcher/x", 404),
        (b"http://elsewhere/version", 200),
        (b"http://[::1/version", 200),
        (b"http://]/version", 200),
        (b"http://elsewhere", 404),
        (b"://", 404),
        (b"*", 404),
        (b"", 404),
    ],
)
async def test_nothing_in_a_path_is_percent_decoded(target: bytes, status: int) -> None:
    talk, _ = await answer_of(an_api().app, a_scope("GET", target))
    assert talk.status == status


# --- CORS ------------------------------------------------------------------------------------


async def test_without_an_origin_nothing_is_added() -> None:
    answered = await an_api().get("/version")
    assert not [name for name, _ in answered.headers if name.lower().startswith("access-control")]


async def test_any_origin_may_read_answers_and_their_request_id() -> None:
    for path in ("/version", "/v1/nope"):
        answered = await an_api().get(path, {"Origin": "https://app.acme.test"})
        assert answered.headers["Access-Control-Allow-Origin"] == "*"
        exposed = answered.headers["Access-Control-Expose-Headers"]
        assert exposed == (
            "X-Request-Id, Location, Retry-After, X-Fetcher-Result-Hmac, X-Fetcher-Result-Size,"
            " X-Fetcher-Result-Key-Version"
        )


async def test_preflight_is_answered_without_a_body() -> None:
    answered = await an_api().call(
        "OPTIONS",
        JOBS,
        headers={
            "Origin": "https://app.acme.test",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,x-product-name",
        },
    )
    assert (answered.status, answered.raw) == (204, b"")
    headers = answered.headers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Access-Control-Allow-Methods"] == "GET,POST,HEAD,PUT,DELETE,PATCH"
    assert headers["Access-Control-Allow-Headers"] == "content-type,x-product-name"
    assert headers["Vary"] == "Access-Control-Request-Method, Access-Control-Request-Headers"
    assert "Access-Control-Allow-Credentials" not in headers


async def test_configured_origins_are_the_only_ones() -> None:
    api = an_api(settings=HttpSettings(cors_origins=("https://app.acme.test",)))
    allowed = await api.get("/version", {"Origin": "https://app.acme.test"})
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://app.acme.test"
    assert allowed.headers["Vary"] == "Origin"
    refused = await api.get("/version", {"Origin": "https://evil.test"})
    assert "Access-Control-Allow-Origin" not in refused.headers


# --- crashes ---------------------------------------------------------------------------------


class Crashing:
    """A connection store with a programming error that names a secret."""

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        raise KeyError("canary-s3cret")


async def crashed() -> Answered:
    return await an_api(connections=Crashing()).get(f"{CONNECTIONS}/{new_connection_id()}")


async def test_crash_is_a_500_that_tells_nothing_and_the_server_goes_on() -> None:
    api = an_api(connections=Crashing())
    answered = await api.get(f"{CONNECTIONS}/{new_connection_id()}")
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert b"canary" not in answered.raw
    assert (await api.get("/version")).status == 200


async def test_crash_is_logged_by_type_and_place_without_its_text() -> None:
    with capture_logs() as logs:
        await crashed()
    failure = next(entry for entry in logs if entry["event"] == "request_failed")
    assert failure["error"] == "KeyError"
    assert failure["operation"] == "get_connection"
    assert "/test_middlewares.py:" in failure["where"][-1]
    assert "canary" not in repr(logs)


async def test_crash_below_the_framework_is_a_500_too() -> None:
    api = an_api()

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("canary")

    api.app.asgi_app._app = broken  # type: ignore[attr-defined] # what the outermost layer wraps
    with capture_logs() as logs:
        talk, body = await answer_of(api.app, a_scope())
    assert talk.status == 500
    assert b'"FET-0002"' in body
    assert logs[0]["event"] == "request_crashed"
    assert "canary" not in repr(logs)


# --- access log and metrics ------------------------------------------------------------------


async def access_log_of(method: str, path: str, **headers: str) -> list[Any]:
    with capture_logs() as logs:
        await an_api().call(method, path, headers={"X-Request-Id": "r-1"} | headers)
    return [entry for entry in logs if "http_path" in entry]


async def test_access_log_has_one_record_with_the_route_s_template() -> None:
    (entry,) = await access_log_of("GET", f"{CONNECTIONS}/{new_connection_id()}")
    assert isinstance(entry.pop("http_latency_ms"), int)
    assert entry == {
        "event": "- GET /v1/management/connections/{id} HTTP/1.1 404 "
        + entry["event"].rsplit(" ", 1)[1],
        "log_level": "warning",
        "http_status_code": 404,
        "http_method": "GET",
        "http_path": "/v1/management/connections/{id}",
        "message_prefix": "r-1 | ",
        "X-Request-Id": "r-1",
    }


@pytest.mark.parametrize(
    ("method", "path", "level", "route"),
    [
        ("GET", "/version", "info", "/version"),
        ("GET", "/v1/canary", "warning", "/{unmatched}"),
        ("BREW", "/version", "warning", "/{unmatched}"),
    ],
)
async def test_access_log_s_level_follows_the_status(
    method: str, path: str, level: str, route: str
) -> None:
    (entry,) = await access_log_of(method, path)
    assert (entry["log_level"], entry["http_path"]) == (level, route)
    assert "canary" not in repr(entry)


async def test_server_failure_is_logged_as_an_error() -> None:
    with capture_logs() as logs:
        await crashed()
    assert logs[-1]["log_level"] == "error"
    assert logs[-1]["http_status_code"] == 500


@pytest.mark.parametrize("path", ["/health", "/health/", "/readyz", "/readyz/tenant/a", "/metrics"])
async def test_probes_are_not_logged(path: str) -> None:
    assert await access_log_of("GET", path) == []


async def test_request_id_is_in_the_context_of_everything_a_request_logs() -> None:
    seen: list[Any] = []

    class Looking:
        async def get(self, connection_id: ConnectionId) -> Connection | None:
            seen.append(structlog.contextvars.get_contextvars().get("request_id"))
            return None

    api = an_api(connections=Looking())
    await api.get(f"{CONNECTIONS}/{new_connection_id()}", {"X-Request-Id": "r-7"})
    assert seen == ["r-7"]
    assert "request_id" not in structlog.contextvars.get_contextvars()


async def test_requests_are_counted_by_method_route_and_status() -> None:
    api = an_api()
    await api.get(f"{CONNECTIONS}/{new_connection_id()}")
    await api.call("BREW", "/v1/secret-path")
    metrics = (await api.get("/metrics")).raw.decode()
    counted = 'fetcher_http_requests_total{code="404",method="GET",'
    assert counted + 'route="/v1/management/connections/{id}"} 1.0' in metrics
    assert 'method="OTHER",route="/{unmatched}"' in metrics
    assert "fetcher_http_request_duration_seconds_bucket" in metrics
    assert "secret-path" not in metrics


async def test_no_secret_of_a_body_is_logged() -> None:
    with capture_logs() as logs:
        await an_api().create(a_body(password="canary-1", host="canary_2", port=0))
        await an_api().create(a_body(password="canary-1", type="canary-3"))
        await an_api().create(a_body(password="canary-1"))
    assert len(logs) == 3
    assert "canary" not in repr(logs)


# --- headers for browsers ----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/version", "/v1/nope", CONNECTIONS, f"{JOBS}/nope"])
async def test_every_answer_tells_browsers_to_do_no_more_with_it(path: str) -> None:
    answered = await an_api().get(path)
    told = {name: answered.headers.getlist(name) for name in _TOLD}
    assert told == {name: [text] for name, text in _TOLD.items()}


_TOLD = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


async def test_failure_of_the_callers_own_source_is_no_error_of_ours() -> None:
    """Status 500 is the Wire's; what there is to mend, the operator cannot."""
    api = await an_api_with("sales_db")
    [connection] = await api.records.connections.find_by_config_names(["sales_db"])
    source = api.engines.source("sales_db")
    source.test_error = source.discovery_error = SourceFailure(Stage.AUTH, "auth")
    for method, operation in (("POST", "test"), ("GET", "schema")):
        with capture_logs() as logs:
            answered = await api.call(method, f"{CONNECTIONS}/{connection.id}/{operation}")
        assert answered.status == 500
        assert [entry["log_level"] for entry in logs] == ["info", "warning"]
        told = {name: logs[0].get(name) for name in ("event", "stage", "reason", "source")}
        assert told == {
            "event": "source_failed",
            "stage": "auth",
            "reason": "auth",
            "source": "sales_db",
        }
        assert logs[1]["http_status_code"] == 500


@pytest.mark.parametrize("path", [CONNECTIONS, f"{CONNECTIONS}/unassigned", JOBS])
async def test_pages_are_written_in_a_thread(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[int] = []
    write = routing._json_bytes

    def noted(body: Mapping[str, object]) -> bytes:
        writers.append(threading.get_ident())
        return write(body)

    monkeypatch.setattr(routing, "_json_bytes", noted)
    assert (await an_api().get(path)).json["items"] == []
    assert len(writers) == 1
    assert writers[0] != threading.get_ident()
