"""Who is let in, before anything else is looked at: rest-api 2.1, 3 and 17.6."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.adapters.auth.local_token import LocalToken
from fetcher.api.application import manager_routes
from fetcher.api.incoming import LINGER_SECONDS
from fetcher.api.request_limits import MAX_HEADER_BYTES
from fetcher.api.route_finder import RouteFinder
from fetcher.domain.access import Granted, Permission, Refusal, Refused, Relayed, Verdict
from fetcher.domain.errors import PortUnavailable
from tests.unit.api.asgi_client import a_scope, answer_of, exchange
from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, Answered, a_body, an_api

TOKEN = "canary-token-9f3a7c"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Accept": "application/json"}


class Judge:
    """An authorizer that has made up its mind, and remembers what it was asked."""

    relays = True

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.asked: list[tuple[str | None, str, Mapping[str, str]]] = []

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        await trio.lowlevel.checkpoint()
        self.asked.append((token, f"{permission.resource}/{permission.action}", trace))
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


def refusing(reason: Refusal = Refusal.UNAUTHORIZED) -> Judge:
    return Judge(Refused(reason))


async def asked_for(judge: Judge, headers: Mapping[str, str]) -> Answered:
    return await an_api(authorizer=judge).get(CONNECTIONS, headers)


# --- the order of things ---------------------------------------------------------------------


async def test_every_product_route_is_refused_and_asked_with_its_own_permission() -> None:
    judge = refusing(Refusal.FORBIDDEN)
    api = an_api(authorizer=judge)
    product = [route for route in manager_routes(api.services) if route.permission is not None]
    assert len(product) >= 8
    for route in product:
        answered = await api.call(
            route.method, route.path.replace("{id}", "no-uuid"), headers=BEARER
        )
        assert (answered.status, answered.raw) == (403, b"Forbidden"), route.name
        assert judge.asked[-1] == (TOKEN, f"{route.resource}/{route.action}", {})
    assert len(judge.asked) == len(product)


async def test_system_routes_ask_nobody() -> None:
    judge = refusing()
    api = an_api(authorizer=judge)
    for path in ("/health", "/readyz", "/metrics", "/version", "/openapi.json", "/health/"):
        assert (await api.get(path)).status == 200
    assert not judge.asked


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nope", 404),
        ("GET", "/", 404),
        ("GET", f"{CONNECTIONS}/a/b/c", 404),
        ("PUT", CONNECTIONS, 405),
        ("OPTIONS", CONNECTIONS, 405),
    ],
)
async def test_what_is_no_operation_asks_nobody(method: str, path: str, status: int) -> None:
    judge = refusing()
    assert (await an_api(authorizer=judge).call(method, path)).status == status
    assert not judge.asked


@pytest.mark.parametrize(
    "path",
    [
        f"{CONNECTIONS}/",
        f"/{CONNECTIONS}",
        f"http://elsewhere.test{CONNECTIONS}",
        f"{CONNECTIONS}?limit=1",
        f"{JOBS}/%2e%2e/",
        f"{JOBS}/a b",
    ],
)
async def test_other_spellings_of_a_path_are_judged_too(path: str) -> None:
    judge = refusing()
    target, _, query = path.partition("?")
    scope = a_scope("GET", target.encode(), query=query.encode())
    talk, body = await answer_of(an_api(authorizer=judge).app, scope)
    assert (talk.status, body, len(judge.asked)) == (401, b"Unauthorized", 1)


async def test_head_is_judged_as_get() -> None:
    judge = refusing()
    answered = await an_api(authorizer=judge).call("HEAD", CONNECTIONS)
    assert answered.status == 401
    assert [asked for _, asked, _ in judge.asked] == ["connections/get"]


async def test_preflight_is_answered_and_a_refusal_can_be_read_across_origins() -> None:
    judge = refusing()
    api = an_api(authorizer=judge)
    preflight = {"Origin": "https://a.test", "Access-Control-Request-Method": "GET"}
    assert (await api.call("OPTIONS", CONNECTIONS, headers=preflight)).status == 204
    assert not judge.asked
    answered = await api.get(CONNECTIONS, {"Origin": "https://a.test", "X-Request-Id": "r-1"})
    assert answered.status == 401
    assert answered.headers["Access-Control-Allow-Origin"] == "*"
    assert answered.headers["X-Request-Id"] == "r-1"


@pytest.mark.parametrize(
    ("path", "headers", "data"),
    [
        (CONNECTIONS, {}, b"{not json"),
        (CONNECTIONS, {"X-Product-Name": "&"}, b"{}"),
        (CONNECTIONS, {"Content-Type": "text/plain"}, b""),
        (f"{CONNECTIONS}/no-uuid/test", {}, b""),
        (JOBS, {"Idempotency-Key": "x" * 500}, b"[]"),
    ],
)
async def test_refusal_comes_before_path_header_and_body(
    path: str, headers: dict[str, str], data: bytes
) -> None:
    api = an_api(authorizer=LocalToken(TOKEN))
    answered = await api.call("POST", path, headers=headers, data=data)
    assert (answered.status, answered.raw) == (401, b"Missing Token")
    with_token = await api.call("POST", path, headers={**headers, **BEARER}, data=data)
    assert with_token.status == 400


async def test_body_is_not_read_before_the_caller_is_let_in() -> None:
    length = (b"content-length", b"5242880")
    scope = a_scope("POST", JOBS.encode(), headers=[length])
    async with exchange(an_api(authorizer=refusing()).app, scope) as talk:
        assert await talk.next() == b"Unauthorized"
        assert (talk.status, talk.header("connection")) == (401, ["close"])


async def test_refused_client_that_goes_on_sending_finds_its_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    scope = a_scope("POST", JOBS.encode(), headers=[(b"transfer-encoding", b"chunked")])
    async with exchange(an_api(authorizer=refusing()).app, scope) as talk:
        assert await talk.next() == b"Unauthorized"
        for _ in range(100):
            await talk.body(bytes(65536), more=True)
        await trio.testing.wait_all_tasks_blocked()
        assert talk.waiting_events == 0
        await trio.sleep(LINGER_SECONDS)
        await talk.disconnect()
        await talk.ended.wait()


async def test_refused_request_without_a_body_keeps_its_connection() -> None:
    for headers in ([], [(b"content-length", b"0")]):
        scope = a_scope("GET", CONNECTIONS.encode(), headers=headers)
        talk, body = await answer_of(an_api(authorizer=refusing()).app, scope)
        assert (talk.status, body, talk.header("connection")) == (401, b"Unauthorized", [])


async def test_too_large_a_head_is_refused_before_anybody_is_asked() -> None:
    judge = refusing()
    header = (b"authorization", b"Bearer " + b"x" * MAX_HEADER_BYTES)
    scope = a_scope("GET", CONNECTIONS.encode(), headers=[header])
    talk, _ = await answer_of(an_api(authorizer=judge).app, scope)
    assert talk.status == 431
    assert not judge.asked


async def test_operation_that_was_not_judged_is_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate finds routes by itself; should it ever find others, the application says no."""
    monkeypatch.setattr(RouteFinder, "product_route", lambda *_: None)
    api = an_api(authorizer=Judge(Granted()))
    answered = await api.create(a_body())
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert await api.records.connections.find_by_config_names(["sales_db"]) == []


# --- the answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "status", "text"),
    [
        (Refusal.MISSING_TOKEN, 401, b"Missing Token"),
        (Refusal.UNAUTHORIZED, 401, b"Unauthorized"),
        (Refusal.FORBIDDEN, 403, b"Forbidden"),
    ],
)
@pytest.mark.parametrize(
    "accept", [None, "*/*", "text/html, application/*;q=0.9", "", "application/json;q=0"]
)
async def test_refusal_is_plain_text(
    reason: Refusal, status: int, text: bytes, accept: str | None
) -> None:
    answered = await asked_for(refusing(reason), {} if accept is None else {"Accept": accept})
    assert (answered.status, answered.raw) == (status, text)
    assert answered.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answered.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "Application/JSON; q=0.5",
        "text/html, application/json",
        "application/json;v=1",
    ],
)
async def test_refusal_is_json_for_who_asks_for_it_by_name(accept: str) -> None:
    answered = await asked_for(refusing(), {"Accept": accept})
    assert answered.json == {
        "code": "FET-0006",
        "title": "Unauthorized",
        "message": "Unauthorized",
        "errorCode": "FET-0006",
    }
    assert answered.headers["Content-Type"] == "application/json"
    assert answered.headers["WWW-Authenticate"] == "Bearer"
    missing = await asked_for(refusing(Refusal.MISSING_TOKEN), {"Accept": accept})
    assert (missing.json["code"], missing.json["message"]) == ("FET-0006", "Missing Token")
    forbidden = await asked_for(refusing(Refusal.FORBIDDEN), {"Accept": accept})
    assert forbidden.problem == (403, "FET-0007", "Forbidden")


async def test_nobody_to_ask_is_503_and_says_when_to_come_again() -> None:
    away = Judge(PortUnavailable("cannot be reached"))
    with capture_logs() as logs:
        answered = await asked_for(away, BEARER)
    assert (answered.status, answered.raw) == (503, b"Service Unavailable")
    assert answered.headers["Retry-After"] == "5"
    assert {
        "event": "authorization_unavailable",
        "log_level": "error",
        "why": "cannot be reached",
    } in [
        {name: log[name] for name in ("event", "log_level", "why") if name in log} for log in logs
    ]
    in_json = await asked_for(away, BEARER | JSON)
    assert in_json.problem == (503, "FET-0003", "Service Unavailable")


async def test_crash_of_the_authorizer_lets_nobody_in() -> None:
    answered = await asked_for(Judge(RuntimeError("bug")), BEARER)
    assert answered.problem == (500, "FET-0002", "Internal Server Error")


@pytest.mark.parametrize("headers", [{}, JSON])
async def test_service_s_own_words_are_told_as_they_are(headers: dict[str, str]) -> None:
    body = {"entityType": "policy", "title": "No", "message": "not you", "code": "17"}
    answered = await asked_for(Judge(Relayed(status=418, body=body)), headers)
    assert answered.status == 418
    assert answered.json == {**body, "errorCode": "17"}
    assert answered.headers["Content-Type"] == "application/json"


async def test_whoever_is_let_in_is_served() -> None:
    judge = Judge(Granted())
    api = an_api(authorizer=judge)
    created = await api.create(a_body(), PRODUCT | BEARER)
    assert created.status == 201
    assert (await api.get(f"{CONNECTIONS}/{created.json['id']}", BEARER)).status == 200
    assert [asked for _, asked, _ in judge.asked] == ["connections/post", "connections/get"]


async def test_without_an_authorizer_everybody_is_served() -> None:
    assert (await an_api().get(CONNECTIONS, {"Authorization": "Basic x"})).status == 200


# --- what is passed on, and what is never told -----------------------------------------------

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        ({}, {}),
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        (
            {"traceparent": PARENT, "tracestate": "a=1,b=2"},
            {"traceparent": PARENT, "tracestate": "a=1,b=2"},
        ),
        ({"tracestate": "a=1"}, {}),
        ({"traceparent": PARENT.upper(), "tracestate": "a=1"}, {}),
        ({"traceparent": PARENT + "-x"}, {}),
        ({"traceparent": PARENT, "tracestate": "x" * 513}, {"traceparent": PARENT}),
    ],
)
async def test_trace_is_passed_on_where_it_is_one(
    headers: dict[str, str], trace: dict[str, str]
) -> None:
    judge = refusing()
    await asked_for(judge, headers)
    assert judge.asked[0][2] == trace


async def test_token_is_in_no_log_no_answer_and_no_metric() -> None:
    told: list[Any] = []
    for verdict in (
        Granted(),
        Refused(Refusal.UNAUTHORIZED),
        PortUnavailable("no answer in time"),
        RuntimeError(f"bug with {TOKEN}"),
    ):
        api = an_api(authorizer=Judge(verdict))
        with capture_logs() as logs:
            for headers in (BEARER, BEARER | JSON, {"Authorization": TOKEN}):
                for path in (CONNECTIONS, f"{JOBS}/{uuid4()}"):
                    answered = await api.get(path, headers)
                    told += [answered.raw, list(answered.headers)]
        told += [logs, (await api.get("/metrics")).raw, repr(api.services)]
    assert len(told) > 50
    assert TOKEN not in str(told)


async def test_log_and_metrics_name_the_route_of_a_refused_request() -> None:
    api = an_api(authorizer=refusing())
    with capture_logs() as logs:
        await api.get(f"{JOBS}/{uuid4()}")
    assert [log["http_path"] for log in logs if "http_path" in log] == [f"{JOBS}/{{id}}"]
    assert b'route="/v1/fetcher/{id}"' in (await api.get("/metrics")).raw


# --- one token for everybody -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "status", "text"),
    [
        (f"Bearer {TOKEN}", 200, None),
        (f"bearer {TOKEN}", 200, None),
        (TOKEN, 200, None),
        (None, 401, b"Missing Token"),
        ("Bearer", 401, b"Missing Token"),
        (f"Basic {TOKEN}", 401, b"Missing Token"),
        (f"Bearer {TOKEN} x", 401, b"Missing Token"),
        (f"Bearer {TOKEN}x", 401, b"Unauthorized"),
        (f"Bearer {TOKEN[:-1]}", 401, b"Unauthorized"),
        (f"Bearer {TOKEN.upper()}", 401, b"Unauthorized"),
        ("Bearer \xe9", 401, b"Unauthorized"),
    ],
)
async def test_access_token_lets_in_who_has_it(
    authorization: str | None, status: int, text: bytes | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answered = await an_api(authorizer=LocalToken(TOKEN)).get(CONNECTIONS, headers)
    assert answered.status == status
    if text is not None:
        assert answered.raw == text
        assert answered.headers["WWW-Authenticate"] == "Bearer"
