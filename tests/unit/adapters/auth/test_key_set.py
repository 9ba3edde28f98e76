"""Tokens verified by published keys: algorithms, times, and when keys are read."""

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.auth.jwk import KeySetUnreadable, read_keys
from fetcher.adapters.auth.key_set import KeySet
from fetcher.adapters.http_client import HttpAnswer, HttpClient
from fetcher.domain.access_tokens import read_token
from fetcher.domain.errors import PortUnavailable
from tests.unit.adapters.auth.keys import (
    Signing,
    an_ec_key,
    an_ed_key,
    an_rsa_key,
    b64,
    key_set,
)

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
RSA, EC, ED = an_rsa_key(), an_ec_key(), an_ed_key()
ALL = key_set(RSA.published("r"), EC.published("c"), ED.published("d"))
KIDS = {"RS256": "r", "ES256": "c", "EdDSA": "d"}


class Published:
    """An address that answers with what is published now; None is away."""

    def __init__(self, body: bytes | None, status: int = 200) -> None:
        self.body = body
        self.status = status
        self.calls = 0

    async def call(self, method: str, url: str, *, deadline_seconds: float) -> HttpAnswer:
        assert (method, url) == ("GET", "https://auth.test/keys")
        self.calls += 1
        await trio.lowlevel.checkpoint()
        if self.body is None:
            raise PortUnavailable("cannot be reached")
        return HttpAnswer(status=self.status, body=self.body)


def a_key_set(published: Published) -> KeySet:
    began = trio.current_time()

    def now() -> datetime:
        return NOW + timedelta(seconds=trio.current_time() - began)

    return KeySet(cast("HttpClient", published), "https://auth.test/keys", now=now)


async def verified(token: str, keys: bytes = ALL) -> bool:
    return await a_key_set(Published(keys)).verifies(read_token(token))


@pytest.mark.parametrize("signing", [RSA, EC, ED], ids=lambda s: s.algorithm)
async def test_token_of_a_published_key_is_verified(signing: Signing) -> None:
    kid = KIDS[signing.algorithm]
    assert await verified(signing.token({"sub": "jane"}, kid=kid))
    assert await verified(signing.token({"sub": "jane"}))
    other = {"RS256": an_rsa_key, "ES256": an_ec_key, "EdDSA": an_ed_key}[signing.algorithm]()
    assert not await verified(other.token({"sub": "jane"}, kid=kid))
    assert not await verified(other.token({"sub": "jane"}))


@pytest.mark.parametrize("signing", [RSA, EC, ED], ids=lambda s: s.algorithm)
async def test_changed_claims_or_signature_are_refused(signing: Signing) -> None:
    header, claims, signature = signing.token({"sub": "jane"}).split(".")
    forged = b64(b'{"sub":"root"}')
    assert not await verified(f"{header}.{forged}.{signature}")
    assert not await verified(f"{header}.{claims}.")
    assert not await verified(f"{header}.{claims}.{signature[:-4]}")
    assert not await verified(f"{header}.{claims}.{b64(bytes(64))}")


@pytest.mark.parametrize(
    "header",
    [{"alg": "none"}, {"alg": "HS256"}, {"alg": "RS512"}, {"alg": None}, {"alg": ["RS256"]}, {}],
)
async def test_algorithm_is_the_key_s_and_never_what_the_token_says(header: dict[str, Any]) -> None:
    signed = ".".join(b64(json.dumps(part).encode()) for part in (header, {"sub": "root"}))
    assert not await verified(f"{signed}.{b64(RSA.sign(signed.encode()))}")
    assert not await verified(f"{signed}.")
    shared = hmac.new(ALL, signed.encode(), hashlib.sha256).digest()
    assert not await verified(f"{signed}.{b64(shared)}")


async def test_another_key_s_algorithm_does_not_verify() -> None:
    assert not await verified(RSA.token({}, alg="ES256", kid="r"))
    assert not await verified(ED.token({}, kid="r"))


@pytest.mark.parametrize(
    ("claims", "verifies"),
    [
        ({}, True),
        ({"exp": SECONDS + 1, "nbf": SECONDS}, True),
        ({"exp": SECONDS - 59}, True),
        ({"exp": SECONDS - 60}, False),
        ({"exp": SECONDS - 58.5}, True),
        ({"nbf": SECONDS + 60}, True),
        ({"nbf": SECONDS + 61}, False),
        ({"exp": "9999999999"}, False),
        ({"exp": None}, False),
        ({"exp": True}, False),
        ({"exp": []}, False),
        ({"nbf": "0"}, False),
        ({"exp": 10**300}, True),
        ({"exp": -(10**300)}, False),
    ],
)
async def test_times_have_a_leeway_of_a_minute(claims: dict[str, Any], verifies: bool) -> None:
    assert await verified(ED.token(claims)) is verifies


@pytest.mark.parametrize("header", [{"crit": ["b64"]}, {"crit": []}, {"kid": 7}, {"kid": ["d"]}])
async def test_header_that_asks_for_more_is_refused(header: dict[str, Any]) -> None:
    assert not await verified(ED.token({}, **header))


@pytest.mark.parametrize(
    "changed",
    [
        {"use": "enc"},
        {"alg": "HS256"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"kid": 7},
        {"kty": "oct"},
        {"crv": "Ed448"},
        {"crv": ["Ed25519"]},
        {"x": "AAAA"},
        {"x": "not base64!"},
        {"x": None},
    ],
)
def test_key_that_is_not_for_verifying_is_left_out(changed: dict[str, Any]) -> None:
    assert not read_keys(key_set({**ED.published("d"), **changed}))
    assert [key.kid for key in read_keys(key_set(ED.published("d", use="sig")))] == ["d"]


@pytest.mark.parametrize(
    "changed", [{"n": "AQAB"}, {"n": b64(b"\xff" * 2000)}, {"e": "AA"}, {"e": b64(b"\xff" * 9)}]
)
def test_rsa_key_of_an_unfit_size_is_left_out(changed: dict[str, Any]) -> None:
    assert not read_keys(key_set(RSA.published("r", **changed)))
    assert not read_keys(key_set(an_rsa_key(1024).published("r")))


def test_point_off_the_curve_is_left_out() -> None:
    assert not read_keys(key_set(EC.published("c", y=EC.jwk["x"])))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys":{}}', key_set(*[{}] * 33)])
def test_what_is_no_key_set_is_refused(body: bytes) -> None:
    with pytest.raises(KeySetUnreadable):
        read_keys(body)


async def test_keys_are_read_once_and_again_for_a_key_that_nobody_knows(
    autojump_clock: MockClock,
) -> None:
    published = Published(key_set(RSA.published("r")))
    keys = a_key_set(published)
    assert published.calls == 0
    for _ in range(3):
        assert await keys.verifies(read_token(RSA.token({}, kid="r")))
    assert published.calls == 1
    published.body = ALL
    await trio.sleep(30)
    assert await keys.verifies(read_token(ED.token({}, kid="d")))
    assert published.calls == 2
    for number in range(20):
        assert not await keys.verifies(read_token(ED.token({}, kid=f"unknown-{number}")))
    assert published.calls == 2


async def test_keys_are_read_again_after_an_hour_and_kept_while_the_address_is_away(
    autojump_clock: MockClock,
) -> None:
    published = Published(ALL)
    keys = a_key_set(published)
    assert await keys.verifies(read_token(ED.token({}, kid="d")))
    await trio.sleep(3599)
    assert await keys.verifies(read_token(ED.token({}, kid="d")))
    assert published.calls == 1
    published.body = None
    await trio.sleep(1)
    assert await keys.verifies(read_token(ED.token({}, kid="d")))
    assert published.calls == 2
    with pytest.raises(PortUnavailable):
        await keys.verifies(read_token(ED.token({}, kid="made-meanwhile")))
    published.body = key_set(RSA.published("r"))
    await trio.sleep(30)
    assert not await keys.verifies(read_token(ED.token({}, kid="d")))
    assert published.calls == 3


@pytest.mark.parametrize(
    ("body", "status"), [(None, 200), (ALL, 404), (b"<html>", 200)], ids=["away", "404", "html"]
)
async def test_without_any_keys_nobody_is_judged_and_the_address_asked_every_five_seconds(
    autojump_clock: MockClock, body: bytes | None, status: int
) -> None:
    published = Published(body, status)
    keys = a_key_set(published)
    for _ in range(5):
        with pytest.raises(PortUnavailable, match="no keys to verify tokens with"):
            await keys.verifies(read_token(ED.token({}, kid="d")))
    assert published.calls == 1
    published.body, published.status = ALL, 200
    await trio.sleep(5)
    assert await keys.verifies(read_token(ED.token({}, kid="d")))


async def test_many_tokens_at_once_read_the_keys_once() -> None:
    published = Published(ALL)
    keys = a_key_set(published)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(keys.verifies, read_token(ED.token({}, kid="d")))
    assert published.calls == 1
