"""Tokens as they come in ``Authorization``: what is in them, without judging their signature.

JSON Web Tokens in the compact form (RFC 7515, 7519). Nothing of a token is ever told: not in an
error, not in a ``repr``.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fetcher.domain.json_text import JsonTextError, ObjectWithRepeats, parse
from fetcher.domain.json_values import JsonValue

MAX_TOKEN_CHARACTERS: Final = 16 * 1024
MAX_DEPTH: Final = 16

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_NO_TOKEN = frozenset({"", "null", "nil"})
_SCHEME: Final = "bearer"


class TokenMalformed(ValueError):
    """It is no JSON Web Token; never says more, since it may be somebody's secret all the same."""

    def __init__(self) -> None:
        super().__init__("the token is malformed")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token taken apart. ``signed`` is what ``signature`` was made over."""

    header: Mapping[str, JsonValue] = field(repr=False)
    claims: Mapping[str, JsonValue] = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)


def token_in(authorization: str | None) -> str | None:
    """``Bearer <token>``, the scheme in any case, or the bare token; None for anything else."""
    words = (authorization or "").split()
    if len(words) == 2 and words[0].lower() == _SCHEME:
        token = words[1]
    elif len(words) == 1 and words[0].lower() != _SCHEME:
        token = words[0]
    else:
        return None
    return None if token in _NO_TOKEN else token


def read_token(token: str) -> AccessToken:
    """Take it apart without verifying it. Raise TokenMalformed, also where a claim is there twice:
    whoever verifies it may read the other one (RFC 7519, 4)."""
    parts = token.split(".") if len(token) <= MAX_TOKEN_CHARACTERS else []
    if len(parts) != 3:
        raise TokenMalformed
    header, claims, signature = parts
    return AccessToken(
        header=_object(header),
        claims=_object(claims),
        signed=f"{header}.{claims}".encode("ascii"),
        signature=base64url(signature),
    )


def base64url(text: str) -> bytes:
    """Base64url without padding, to the letter (RFC 7515, 2). Raise TokenMalformed."""
    if not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise TokenMalformed
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _object(part: str) -> Mapping[str, JsonValue]:
    value: JsonValue = None
    try:
        data = base64url(part)
        data.decode("utf-8")
        value = parse(data, max_depth=MAX_DEPTH, notes_repeats=True)
    except (UnicodeDecodeError, JsonTextError):
        value = None
    if not isinstance(value, Mapping) or isinstance(value, ObjectWithRepeats):
        raise TokenMalformed
    return value
