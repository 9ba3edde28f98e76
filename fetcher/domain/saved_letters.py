"""A dead letter as it is saved, and by what it is known again.

A letter has no id of its own: it is what it says. So one is known again by all that was saved of
it, and what a file holds in another form, or not whole, is the form of no letter.
"""

import hashlib
import json
import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, NewType

from fetcher.domain.dead_letters import DeadLetter

Fingerprint = NewType("Fingerprint", bytes)

MAX_DEPTH: Final = 20
COUNTERS: Final = frozenset({"x-acquired-count", "x-delivery-count"})
"""The broker's: each look counts, so a letter has others the next time."""
SAVED: Final = ("exchange", "routingKey", "reason", "headers", "body")


def saved_form(letter: DeadLetter) -> dict[str, object]:
    """As JSON; bytes that are no UTF-8 are ``{"base64": …}``."""
    headers = {name: value for name, value in letter.headers.items() if name not in COUNTERS}
    return {
        "exchange": letter.exchange,
        "routingKey": letter.routing_key,
        "reason": letter.reason,
        "headers": header_json(headers, in_json=bytes_in_json),
        "body": bytes_in_json(letter.body),
    }


def fingerprint(form: Mapping[str, object]) -> Fingerprint:
    """Of a saved form, whatever else lies beside it. Raise KeyError where a part is missing."""
    parts = [form[name] for name in SAVED]
    return Fingerprint(hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest())


def bytes_in_json(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def header_json(value: object, *, in_json: Callable[[bytes], object], depth: int = 0) -> object:
    """Any header as JSON; what a stranger nests deeper than 20 tables is cut off."""
    if isinstance(value, bytes | bytearray):
        return in_json(bytes(value))
    if isinstance(value, Mapping | list) and depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {
            str(name): header_json(each, in_json=in_json, depth=depth + 1)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [header_json(each, in_json=in_json, depth=depth + 1) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | None) else str(value)
