"""Bodies that are too large, too slow, too deep or wrongly packed: case 24, rest-api 2.2, 5.1."""

import gzip
import zlib

import brotli
import pytest
import trio
from trio.testing import MockClock

from fetcher.api.incoming import LINGER_SECONDS
from fetcher.api.payloads import MAX_BODY_BYTES
from fetcher.api.request_limits import MAX_HEADER_BYTES
from fetcher.api.services import HttpSettings
from fetcher.domain.json_text import dumps, parse
from tests.unit.api.asgi_client import a_scope, answer_of, exchange
from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, Answered, a_body, an_api

JSON = (b"content-type", b"application/json")
TOO_LARGE = {
    "code": 413,
    "title": "request_failed",
    "message": "Request Entity Too Large",
    "errorCode": "request_too_large",
}
MEBIBYTE = bytes(1024 * 1024)


async def test_declared_length_beyond_the_limit_is_refused_at_once() -> None:
    scope = a_scope("POST", JOBS.encode(), headers=[JSON, (b"content-length", b"5242880")])
    async with exchange(an_api().app, scope) as talk:
        assert parse(await talk.next()) == TOO_LARGE
        assert (talk.status, talk.header("connection")) == (413, ["close"])


@pytest.mark.parametrize(("over", "status"), [(0, 400), (1, 413)])
async def test_body_has_at_most_4_mib(over: int, status: int) -> None:
    chunks = [MEBIBYTE] * 4 + [bytes(over)]
    talk, _ = await answer_of(an_api().app, a_scope("POST", JOBS.encode(), headers=[JSON]), chunks)
    assert talk.status == status


async def test_refused_client_that_goes_on_sending_is_taken_from_until_it_is_cut_off(
    autojump_clock: MockClock,
) -> None:
    scope = a_scope("POST", JOBS.encode(), headers=[JSON, (b"content-length", b"99999999")])
    async with exchange(an_api().app, scope) as talk:
        assert b"413" in await talk.next()
        began = trio.current_time()
        for _ in range(1000):
            await talk.body(MEBIBYTE, more=True)
        await trio.testing.wait_all_tasks_blocked()
        assert talk.waiting_events == 0
        await trio.sleep(LINGER_SECONDS)
        await talk.disconnect()
        await talk.ended.wait()
        assert trio.current_time() - began == pytest.approx(LINGER_SECONDS)


async def test_body_of_one_byte_a_second_is_cut_off_while_others_are_served(
    autojump_clock: MockClock,
) -> None:
    api = an_api(settings=HttpSettings(body_seconds=10))
    scope = a_scope("POST", JOBS.encode(), headers=[JSON, (b"content-length", b"1000")])
    began = trio.current_time()
    async with exchange(api.app, scope) as talk:
        for _ in range(9):
            await talk.body(b" ", more=True)
            await trio.sleep(1)
            assert (await api.get("/version")).status == 200
        assert parse(await talk.next()) == {
            "code": 408,
            "title": "request_failed",
            "message": "Request Timeout",
            "errorCode": "request_timeout",
        }
        assert talk.status == 408
        assert trio.current_time() - began == pytest.approx(10)


async def test_client_that_goes_away_in_its_body_is_no_request() -> None:
    api = an_api()
    async with exchange(api.app, a_scope("POST", JOBS.encode(), headers=[JSON])) as talk:
        await talk.body(b"{", more=True)
        await talk.disconnect()
        await talk.ended.wait()
    assert talk.status is None


async def test_bodies_together_hold_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetcher.api.request_limits.MAX_HELD_BYTES", 3 * 1024 * 1024)
    app = an_api().app
    scope = a_scope("POST", JOBS.encode(), headers=[JSON])
    async with exchange(app, scope) as first:
        await first.body(MEBIBYTE, more=True)
        await first.body(MEBIBYTE, more=True)
        await trio.testing.wait_all_tasks_blocked()
        second, body = await answer_of(app, scope, [MEBIBYTE, MEBIBYTE])
        assert (second.status, second.header("Retry-After")) == (503, ["5"])
        assert b"Service Unavailable" in body
    again, _ = await answer_of(app, scope, [MEBIBYTE, MEBIBYTE])
    assert again.status == 400


async def test_header_block_beyond_its_limit_is_refused() -> None:
    padding = (b"x-padding", b"p" * MAX_HEADER_BYTES)
    talk, body = await answer_of(an_api().app, a_scope("GET", b"/version", headers=[padding]))
    assert talk.status == 431
    assert parse(body)["title"] == "request_failed"  # type: ignore[call-overload,index] # an object
    short = (b"x-padding", b"p" * (MAX_HEADER_BYTES - 100))
    talk, _ = await answer_of(an_api().app, a_scope("GET", b"/version", headers=[short]))
    assert talk.status == 200


async def test_request_with_two_lengths_is_refused_and_its_connection_given_up() -> None:
    lengths = [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")]
    talk, body = await answer_of(an_api().app, a_scope("POST", JOBS.encode(), headers=lengths))
    assert (talk.status, talk.header("connection")) == (400, ["close"])
    assert parse(body) == {
        "code": 400,
        "title": "request_failed",
        "message": "Bad Request",
        "errorCode": "bad_framing",
    }


async def test_websockets_are_not_spoken() -> None:
    sent: list[str] = []

    async def send(event: object) -> None:
        sent.append(str(event["type"]))  # type: ignore[index] # an ASGI event

    async def receive() -> None:
        await trio.sleep_forever()

    scope = a_scope("GET", b"/version") | {"type": "websocket", "subprotocols": []}
    await an_api().app(scope, receive, send)  # type: ignore[arg-type] # a scope by hand
    assert sent == ["websocket.close"]


# --- encodings and depth ---------------------------------------------------------------------


async def packed(body: bytes, encoding: str) -> Answered:
    headers = PRODUCT | {"Content-Type": "application/json", "Content-Encoding": encoding}
    return await an_api().call("POST", CONNECTIONS, headers=headers, data=body)


RAW_DEFLATE = zlib.compressobj(wbits=-15)
BODY = dumps(a_body()).encode()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(BODY), "gzip"),
        (gzip.compress(BODY), "x-gzip"),
        (zlib.compress(BODY), "deflate"),
        (RAW_DEFLATE.compress(BODY) + RAW_DEFLATE.flush(), "Deflate"),
        (gzip.compress(zlib.compress(BODY)), "deflate, gzip"),
        (brotli.compress(BODY), "br"),
        (BODY, "identity"),
    ],
)
async def test_packed_bodies_are_unpacked(body: bytes, encoding: str) -> None:
    assert (await packed(body, encoding)).status == 201


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (BODY, "gzip"),
        (gzip.compress(BODY)[:-4], "gzip"),
        (gzip.compress(BODY) + b"x", "gzip"),
        (gzip.compress(BODY), "deflate"),
        (BODY, "br"),
        (brotli.compress(BODY)[:-1], "br"),
        (brotli.compress(BODY) + b"x", "br"),
        (b"", "br"),
        (BODY, "zstd"),
    ],
)
async def test_bodies_that_cannot_be_unpacked_are_an_invalid_payload(
    body: bytes, encoding: str
) -> None:
    assert (await packed(body, encoding)).problem == (400, "FET-0001", "Invalid payload")


async def test_brotli_bomb_is_refused_without_being_unpacked() -> None:
    bomb = brotli.Compressor(quality=5)
    body = b"".join(bomb.process(MEBIBYTE) for _ in range(500)) + bomb.finish()
    answered = await packed(body, "br")
    assert (answered.status, answered.json) == (413, TOO_LARGE)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_bomb_is_refused_without_being_unpacked(encoding: str) -> None:
    bomb = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
    body = b"".join(bomb.compress(MEBIBYTE) for _ in range(500)) + bomb.flush()
    answered = await packed(body, encoding)
    assert (answered.status, answered.json) == (413, TOO_LARGE)


async def test_nested_bombs_are_refused() -> None:
    inner = gzip.compress(bytes(MAX_BODY_BYTES + 1))
    assert (await packed(gzip.compress(inner), "gzip, gzip")).status == 413


@pytest.mark.parametrize("count", [10_000, 2_000_000])
async def test_deep_nesting_is_an_invalid_payload(count: int) -> None:
    headers = {"Content-Type": "application/json"}
    answered = await an_api().call("POST", JOBS, headers=headers, data=b"[" * count)
    assert answered.problem == (400, "FET-0001", "Invalid payload")


async def test_64_levels_are_read_and_65_are_not() -> None:
    headers = {"Content-Type": "application/json"}
    for depth, code in ((64, "FET-0402"), (65, "FET-0001")):
        inner = b"[" * (depth - 2) + b"]" * (depth - 2)
        body = b'{"metadata":{"source":' + inner + b"}}"
        answered = await an_api().call("POST", JOBS, headers=headers, data=body)
        assert answered.json["code"] == code


async def test_invalid_utf_8_is_replaced() -> None:
    headers = PRODUCT | {"Content-Type": "application/json"}
    body = BODY.replace(b"reader", b"re\xffder")
    answered = await an_api().call("POST", CONNECTIONS, headers=headers, data=body)
    assert answered.json["userName"] == "re\ufffdder"


async def test_of_repeated_members_the_last_counts() -> None:
    headers = PRODUCT | {"Content-Type": "application/json"}
    body = b'{"host":"first","HOST":"x",' + BODY[1:-1] + b',"host":"last"}'
    answered = await an_api().call("POST", CONNECTIONS, headers=headers, data=body)
    assert answered.json["host"] == "last"
