"""How a canary may be spelt where nobody expects it, and the search for all of it."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import quote

MARK: Final = "zq7canary"
"""In every canary. What leaks one in part leaks this, however its other characters are escaped."""
ODD: Final = '"é%+&/'
"""Characters that JSON, addresses and forms each escape in their own way."""
_AROUND: Final = 60


def canary(name: str, *, is_ascii: bool = False) -> str:
    """The canary of a field. With ``is_ascii`` it is one that a header may have."""
    return f"{MARK}-{name}-{'+/%=' if is_ascii else ODD}"


@dataclass(frozen=True, slots=True)
class Hit:
    """Where it was found, how it was spelt, and what stood around it."""

    place: str
    spelling: str
    around: str


def hits(places: Mapping[str, bytes], mark: str = MARK) -> list[Hit]:
    """Each place in which ``mark`` stands in any spelling."""
    return [
        Hit(place, name, _around(content, found))
        for place, content in places.items()
        for name, pattern in _patterns(mark)
        if (found := pattern.search(content)) is not None
    ]


@cache
def _patterns(mark: str) -> tuple[tuple[str, re.Pattern[bytes]], ...]:
    return tuple(
        (name, re.compile(re.escape(text), 0 if "base64" in name else re.IGNORECASE))
        for name, text in _spellings(mark)
    )


def _spellings(mark: str) -> Iterator[tuple[str, bytes]]:
    raw = mark.encode()
    yield "plain", raw
    yield "backwards", raw[::-1]
    yield "hex", raw.hex().encode()
    yield "hex, spaced", raw.hex(" ").encode()
    yield "escaped by percent", "".join(f"%{byte:02x}" for byte in raw).encode()
    yield "escaped in JSON", "".join(f"\\u{ord(each):04x}" for each in mark).encode()
    yield "escaped by backslash", "".join(f"\\x{byte:02x}" for byte in raw).encode()
    yield "UTF-16", mark.encode("utf-16-le")
    yield "UTF-16, hex", mark.encode("utf-16-le").hex().encode()
    for alphabet in (b"+/", b"-_"):
        for before in range(3):
            text = base64.b64encode(b"\0" * before + raw, alphabet)
            # only the characters that depend on the mark alone
            first = -(-before * 8 // 6)
            last = (before + len(raw)) * 8 // 6
            yield f"base64 {before} {alphabet.decode()}", text[first:last]


def _around(content: bytes, found: re.Match[bytes]) -> str:
    return repr(content[max(0, found.start() - _AROUND) : found.end() + _AROUND])


def respelt(text: str) -> dict[str, str]:
    """``text`` as those who quote it might write it: what the search must find."""
    raw = text.encode()
    return {
        "plain": text,
        "JSON": json.dumps({"text": text}),
        "JSON, as it is": json.dumps(text, ensure_ascii=False),
        "an address": f"amqp://user:{quote(text, safe='')}@host",
        "Python": repr(text),
        "Python's bytes": repr(raw),
        "base64": base64.b64encode(raw).decode(),
        "base64 behind a user": base64.b64encode(b"user:" + raw).decode(),
        "base64 behind two": base64.b64encode(b"me" + raw).decode(),
        "base64 of addresses": base64.urlsafe_b64encode(b"u" + raw).decode(),
        "hex": raw.hex(),
        "upper-case hex": raw.hex().upper(),
        "UTF-16": raw.decode().encode("utf-16-le").decode("latin-1"),
        "all percent": "".join(f"%{byte:02X}" for byte in raw),
        "all JSON": "".join(f"\\u{ord(each):04X}" for each in text),
    }
