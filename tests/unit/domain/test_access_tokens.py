"""Reading ``Authorization`` and what a token says: rest-api 3.1, configuration 11.2 and 17.6."""

import base64
import json

import pytest

from fetcher.domain.access import subject_of
from fetcher.domain.access_tokens import (
    MAX_TOKEN_CHARACTERS,
    TokenMalformed,
    base64url,
    read_token,
    token_in,
)
from fetcher.domain.json_values import JsonObject


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def a_token(claims: object, header: object = None, signature: str = "c2ln") -> str:
    return f"{part(header or {'alg': 'RS256'})}.{part(claims)}.{signature}"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER   abc ", "abc"),
        ("abc", "abc"),
        (" abc ", "abc"),
        (None, None),
        ("", None),
        ("  ", None),
        ("Bearer", None),
        ("bEaReR ", None),
        ("Bearer a b", None),
        ("Basic x", None),
        ("a b", None),
        ("null", None),
        ("nil", None),
        ("Bearer null", None),
        ("Bearer nil", None),
        ("Bearer Bearer", "Bearer"),
    ],
)
def test_token_of_the_header(header: str | None, token: str | None) -> None:
    assert token_in(header) == token


def test_token_is_taken_apart() -> None:
    token = a_token({"sub": "jane", "exp": 17, "f": 1.5}, {"alg": "ES256", "kid": "k"}, "AQI")
    read = read_token(token)
    assert read.header == {"alg": "ES256", "kid": "k"}
    assert read.claims["sub"] == "jane"
    assert read.claims["exp"] == 17
    assert read.signed == token.rpartition(".")[0].encode()
    assert read.signature == b"\x01\x02"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.b.c.d",
        "..",
        a_token([1]),
        a_token("text"),
        a_token(None),
        a_token({"sub": "x"}, [1]),
        a_token(b"{"),
        a_token(b'{"a":1} {}'),
        a_token(b'{"a":NaN}'),
        a_token(b'{"tenantId":"acme","tenantId":"beta"}'),
        a_token(b'{"tenantId":"acme","tenant\\u0049d":"beta"}'),
        a_token({"sub": "x"}, b'{"kid":"1","kid":"2"}'),
        a_token(b'{"a":"\xff"}'),
        a_token(b'{"a":' + b"[" * 17 + b"]" * 17 + b"}"),
        a_token({"sub": "x"}, signature="a"),
        a_token({"sub": "x"}, signature="a+b/"),
        a_token({"sub": "x"}, signature="c2ln="),
        a_token({"sub": "x"}) + "\n",
        a_token({"sub": "x"}).replace(".", ".é", 1),
        a_token({"sub": "x" * MAX_TOKEN_CHARACTERS}),
    ],
)
def test_what_is_no_token_is_malformed_and_never_told(token: str) -> None:
    with pytest.raises(TokenMalformed) as malformed:
        read_token(token)
    assert str(malformed.value) == "the token is malformed"


def test_nothing_of_a_token_is_in_its_repr() -> None:
    assert repr(read_token(a_token({"sub": "canary"}))) == "AccessToken()"


@pytest.mark.parametrize(("text", "data"), [("", b""), ("AA", b"\0"), ("-_8", b"\xfb\xff")])
def test_base64url_without_padding(text: str, data: bytes) -> None:
    assert base64url(text) == data


@pytest.mark.parametrize(
    ("claims", "subject"),
    [
        ({"type": "normal-user", "owner": "acme", "sub": "jane"}, "acme/jane"),
        ({"type": "normal-user", "owner": "acme"}, "acme/"),
        ({"type": "normal-user", "owner": "acme", "sub": 7}, "acme/"),
        ({"type": "normal-user", "owner": " ", "sub": "jane"}, None),
        ({"type": "normal-user", "owner": 7, "sub": "jane"}, None),
        ({"type": "normal-user", "sub": "jane"}, None),
        ({"type": "application", "owner": "acme", "sub": "jane"}, "admin/fetcher-editor-role"),
        ({"type": ["normal-user"]}, "admin/fetcher-editor-role"),
        ({}, "admin/fetcher-editor-role"),
    ],
)
def test_subject_of_a_user_and_of_a_machine(claims: JsonObject, subject: str | None) -> None:
    assert subject_of(claims) == subject
