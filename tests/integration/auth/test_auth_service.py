"""The authorization service over real sockets: protocol, failures, reuse, secrets."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.adapters.auth.service import MAX_ANSWER_BYTES, AuthService, open_auth_service
from fetcher.adapters.http_client import open_http
from fetcher.bridge import open_asyncio
from fetcher.domain.access import (
    MACHINE_SUBJECT,
    Granted,
    Permission,
    Refusal,
    Refused,
    Relayed,
    Verdict,
)
from fetcher.domain.errors import PortUnavailable
from tests.servers.auth_double import (
    AUTHORIZED,
    CUT,
    HANG_UP,
    REFUSED,
    SILENT,
    AuthDouble,
    auth_double,
)
from tests.servers.processes import free_port
from tests.unit.adapters.auth.keys import an_ed_key, key_set

KEY = an_ed_key()
JANE = "acme/jane"
USER = KEY.token({"type": "normal-user", "owner": "acme", "sub": "jane"}, kid="d")
PATCH = Permission(resource="connections", action="patch")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthDouble]:
    with auth_double(tmp_path_factory.mktemp("auth")) as double:
        yield double


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


def now() -> datetime:
    return datetime.now(UTC)


async def asked(
    address: str, token: str | None = USER, *, deadline_seconds: float = 10, jwks_url: str = ""
) -> Verdict:
    async with open_auth_service(
        address, jwks_url=jwks_url, now=now, deadline_seconds=deadline_seconds
    ) as auth:
        return await auth.judge(token, PATCH, trace={"traceparent": PARENT})


async def test_question_is_asked_as_the_service_expects_it(service: AuthDouble, room: None) -> None:
    service.answers(AUTHORIZED)
    assert await asked(f"{service.address}/") == Granted(JANE)
    [request] = service.requests()
    assert json.loads(request["body"]) == {
        "sub": "acme/jane",
        "resource": "connections",
        "action": "patch",
    }
    headers = request["headers"]
    assert headers["authorization"] == USER
    assert headers["content-type"] == "application/json"
    assert headers["traceparent"] == PARENT
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers


async def test_machine_asks_as_the_editor_role(service: AuthDouble, room: None) -> None:
    service.answers(AUTHORIZED)
    assert await asked(service.address, KEY.token({"sub": "robot"})) == Granted(MACHINE_SUBJECT)
    assert json.loads(service.requests()[0]["body"])["sub"] == "admin/fetcher-editor-role"


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (None, Refusal.MISSING_TOKEN),
        ("no-jwt", Refusal.UNAUTHORIZED),
        (KEY.token({"type": "normal-user", "sub": "jane"}), Refusal.UNAUTHORIZED),
    ],
)
async def test_token_that_names_nobody_is_refused_without_a_question(
    service: AuthDouble, room: None, token: str | None, reason: Refusal
) -> None:
    service.answers(AUTHORIZED)
    assert await asked(service.address, token) == Refused(reason)
    assert service.requests() == []


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (REFUSED, Refused(Refusal.FORBIDDEN)),
        (
            {"status": 403, "body": '{"code":"AUT-7","message":"no"}'},
            Relayed(status=403, body={"code": "AUT-7", "message": "no"}),
        ),
        ({"status": 429, "body": '{"code":7}'}, Relayed(status=429, body={"code": "7"})),
        ({"status": 500, "body": '{"code":"AUT-9"}'}, Refused(Refusal.FORBIDDEN)),
        (AUTHORIZED | {"headers": {"Set-Cookie": "a=b"}}, Granted(JANE)),
    ],
)
async def test_answer_decides(
    service: AuthDouble, room: None, answer: dict[str, Any], verdict: Verdict
) -> None:
    service.answers(answer)
    assert await asked(service.address) == verdict


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 200, "body": "<html>"}, "its answer cannot be read: no JSON object"),
        ({"status": 502, "body": ""}, "its answer cannot be read: no JSON object"),
        (CUT, "the exchange broke off"),
        (HANG_UP, "the exchange broke off"),
        (SILENT, "no answer in time"),
        (AUTHORIZED | {"times": 8000}, "the answer is too long"),
        (
            {"status": 307, "headers": {"Location": "/elsewhere"}},
            "its answer cannot be read: no JSON object",
        ),
    ],
)
async def test_whatever_goes_wrong_is_asked_once_and_lets_nobody_in(
    service: AuthDouble, room: None, answer: dict[str, Any], why: str
) -> None:
    service.answers(answer)
    with pytest.raises(PortUnavailable) as away:
        await asked(service.address, deadline_seconds=1)
    assert str(away.value) == why
    assert USER not in repr(away.value)
    assert away.value.__context__ is None
    assert len(service.requests()) == 1
    assert service.requests("/elsewhere") == []


async def test_nobody_there_is_told_as_such(room: None) -> None:
    with pytest.raises(PortUnavailable, match="cannot be reached"):
        await asked(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(PortUnavailable, match="cannot be reached"):
        await asked("http://nowhere.invalid")


async def test_garbage_in_place_of_http_is_no_answer(room: None) -> None:
    async def garble(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        await stream.send_all(b"\x00\xff not http at all\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, garble, 0)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(PortUnavailable, match="the exchange broke off"):
            await asked(f"http://127.0.0.1:{port}")
        nursery.cancel_scope.cancel()


async def test_connection_is_kept_for_the_next_question_but_not_after_a_failure(
    service: AuthDouble, room: None
) -> None:
    service.answers(AUTHORIZED, AUTHORIZED, SILENT, AUTHORIZED)
    async with open_auth_service(service.address, now=now, deadline_seconds=1) as auth:
        for _ in range(2):
            await auth.judge(USER, PATCH, trace={})
        with pytest.raises(PortUnavailable):
            await auth.judge(USER, PATCH, trace={})
        await auth.judge(USER, PATCH, trace={})
    first, second, third, fourth = [request["port"] for request in service.requests()]
    assert first == second == third
    assert fourth != third


async def test_calls_wait_their_turn_within_their_deadline(service: AuthDouble, room: None) -> None:
    service.answers(SILENT)
    problems: list[str] = []

    async with open_http(max_answer_bytes=MAX_ANSWER_BYTES, max_calls=2) as http:
        auth = AuthService(http, service.address, keys=None, deadline_seconds=0.5)

        async def ask() -> None:
            with pytest.raises(PortUnavailable) as away:
                await auth.judge(USER, PATCH, trace={})
            problems.append(str(away.value))

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(ask)
        assert trio.current_time() - began < 5
    assert problems == ["no answer in time"] * 6
    assert len(service.requests()) == 2


async def test_cancelled_question_leaves_a_client_that_works(
    service: AuthDouble, room: None
) -> None:
    service.answers(SILENT, AUTHORIZED)
    async with open_auth_service(service.address, now=now) as auth:
        with trio.move_on_after(0.3) as scope:
            await auth.judge(USER, PATCH, trace={})
        assert scope.cancelled_caught
        assert await auth.judge(USER, PATCH, trace={}) == Granted(JANE)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"body": "healthy"}, None),
        ({"body": "healthy\n"}, None),
        ({"body": '{"status":"healthy"}'}, "it answers 200, not 'healthy'"),
        ({"status": 503, "body": "away"}, "it answers 503, not 'healthy'"),
        (HANG_UP, "the exchange broke off"),
    ],
)
async def test_health_is_looked_at_and_only_logged(
    service: AuthDouble, room: None, answer: dict[str, Any], why: str | None
) -> None:
    service.answers(answer, path="/health")
    async with open_auth_service(service.address, now=now) as auth:
        with capture_logs() as logs:
            await auth.check_health()
    assert [log["why"] for log in logs] == ([] if why is None else [why])
    # The library asks again by itself where a GET was answered by nothing at all.
    assert len(service.requests("/health")) == (2 if answer is HANG_UP else 1)


async def test_signature_is_verified_here_too_where_keys_are_published(
    service: AuthDouble, room: None
) -> None:
    service.answers({"body": key_set(KEY.published("d")).decode()}, path="/keys")
    service.answers(AUTHORIZED)
    keys = f"{service.address}/keys"
    assert await asked(service.address, jwks_url=keys) == Granted(JANE)
    forged = an_ed_key().token({"type": "normal-user", "owner": "acme", "sub": "root"}, kid="d")
    assert await asked(service.address, forged, jwks_url=keys) == Refused(Refusal.UNAUTHORIZED)
    assert len(service.requests()) == 1


async def test_keys_and_question_have_one_deadline_together(
    service: AuthDouble, room: None
) -> None:
    service.answers(SILENT, path="/keys")
    service.answers(AUTHORIZED)
    began = trio.current_time()
    with pytest.raises(PortUnavailable, match="no answer in time"):
        await asked(service.address, jwks_url=f"{service.address}/keys", deadline_seconds=0.5)
    assert trio.current_time() - began < 5
    assert service.requests() == []


async def test_nothing_of_the_token_is_logged(service: AuthDouble, room: None) -> None:
    echo = {"status": 200, "body": json.dumps({"authorized": USER})}
    script: Sequence[Any] = (AUTHORIZED, echo, CUT, SILENT)
    service.answers(*script)
    told: list[object] = []
    with capture_logs() as logs:
        async with open_auth_service(service.address, now=now, deadline_seconds=0.5) as auth:
            for _ in script:
                try:
                    told.append(await auth.judge(USER, PATCH, trace={}))
                except PortUnavailable as failure:
                    told += [str(failure), repr(failure)]
            told.append(repr(auth))
    assert len(told) == 8
    for secret in (USER, *USER.split(".")):
        assert secret not in str([logs, told])
