"""`fetcher verify-event`: is this message an event that Fetcher signed?"""

import base64
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fetcher.cli.exits import EXIT_REJECTED, EXIT_SETTINGS
from fetcher.cli.printing import complain, print_json, say
from fetcher.consumer import (
    EVENTS_EXCHANGE,
    EventRejected,
    JobEvent,
    SignatureOutcome,
    verify_event,
)
from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.json_values import JsonValue

MAX_INPUT_BYTES: Final = 64 * 1024 * 1024
STANDARD_INPUT: Final = "-"
ENDED: Final = "signed by a former key, which verifies nothing since APP_ENC_KEY_PREVIOUS_UNTIL"


class InputUnreadable(Exception):
    """What was given is no message; names the place and the member, never a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMessage:
    """A message as a dump has it. A route that it does not tell is None."""

    headers: Mapping[str, JsonValue]
    body: bytes = field(repr=False)
    exchange: str | None
    routing_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What the caller says of the route, over what the message says."""

    exchange: str | None
    routing_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKeys:
    """``valid``: the current one first. ``ended`` are former ones whose time is over."""

    valid: list[bytes] = field(repr=False)
    ended: list[bytes] = field(default_factory=list, repr=False)


def run_verification(file: str, *, keys: EventKeys, route: Route, as_json: bool) -> int:
    """0: all are events of ours; 3: one is not; 2: there is no message that could be read."""
    try:
        messages = list(kept_messages(read_input(file)))
    except InputUnreadable as unreadable:
        complain(f"verify-event: {unreadable}")
        return EXIT_SETTINGS
    verdicts = [judged(message, keys, route) for message in messages]
    for verdict in verdicts:
        if as_json:
            print_json(verdict)
        else:
            say(in_words(verdict))
    return 0 if all(verdict["valid"] for verdict in verdicts) else EXIT_REJECTED


def judged(message: KeptMessage, keys: EventKeys, route: Route) -> dict[str, object]:
    verdict = judged_by(message, keys.valid, route)
    if not verdict["valid"] and keys.ended and judged_by(message, keys.ended, route)["valid"]:
        outcome = SignatureOutcome.PREVIOUS_KEY_ENDED
        return {"valid": False, "outcome": outcome.value, "reason": ENDED}
    return verdict


def judged_by(message: KeptMessage, keys: list[bytes], route: Route) -> dict[str, object]:
    routes = (route.exchange, message.exchange, EVENTS_EXCHANGE)
    exchange = next(name for name in routes if name is not None)
    routing_key = route.routing_key or message.routing_key or likely_routing_key(message)
    try:
        event = verify_event(
            message.headers,
            message.body,
            exchange,
            routing_key,
            key=keys[0],
            previous_keys=keys[1:],
        )
    except EventRejected as rejected:
        reason = str(rejected).removeprefix("event rejected: ")
        return {"valid": False, "outcome": rejected.outcome.value, "reason": reason}
    return {"valid": True, **told(event)}


def likely_routing_key(message: KeptMessage) -> str:
    """Where nothing tells: an event's own headers say which of the two it is."""
    return "job.failed" if message.headers.get("ce-eventtype") == "failed" else "job.completed"


def told(event: JobEvent) -> dict[str, object]:
    about: dict[str, object] = {
        "id": event.id,
        "status": event.status,
        "jobId": event.job_id,
        "tenant": event.tenant,
        "source": event.source,
    }
    if event.result is not None:
        about |= {
            "path": event.result.path,
            "sizeBytes": event.result.size_bytes,
            "hmac": event.result.hmac,
        }
    return about


def in_words(verdict: Mapping[str, object]) -> str:
    if not verdict["valid"]:
        return f"invalid: {verdict['reason']}"
    path = f", result {verdict['path']}" if "path" in verdict else ""
    return f"valid: {verdict['id']}{path}"


# --- what was given ---------------------------------------------------------------------------


def read_input(file: str) -> bytes:
    try:
        if file == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_INPUT_BYTES + 1)
    except OSError as failed:
        raise InputUnreadable(f"{file}: {failed.strerror}") from None
    if len(data) > MAX_INPUT_BYTES:
        raise InputUnreadable(f"{file}: over {MAX_INPUT_BYTES} bytes")
    return data


def kept_messages(data: bytes) -> Iterator[KeptMessage]:
    """One message, an array of them, or one a line. Raise InputUnreadable."""
    values = list(json_values(data))
    if not values:
        raise InputUnreadable("no message")
    for number, value in enumerate(values, start=1):
        yield kept_message(value, f"message {number}")


def json_values(data: bytes) -> Iterator[JsonValue]:
    try:
        whole = parse(data)
    except JsonTextError as not_one:
        lines = [line for line in data.splitlines() if line.strip()]
        if len(lines) < 2:
            raise InputUnreadable(f"not JSON: {not_one}") from None
    else:
        yield from whole if isinstance(whole, list) else [whole]
        return
    for number, line in enumerate(lines, start=1):
        try:
            yield parse(line)
        except JsonTextError as failed:
            raise InputUnreadable(f"line {number}: not JSON: {failed}") from None


def kept_message(value: JsonValue, place: str) -> KeptMessage:
    """``{"headers", "body"}`` with ``exchange`` and ``routingKey``, as the local event log writes
    it, or what RabbitMQ's management interface gives for a message."""
    if not isinstance(value, dict):
        raise InputUnreadable(f"{place}: no object")
    properties = value.get("properties")
    headers = properties.get("headers") if isinstance(properties, dict) else value.get("headers")
    if not isinstance(headers, dict):
        raise InputUnreadable(f"{place}: headers: no object")
    return KeptMessage(
        headers=headers,
        body=body_of(value, place),
        exchange=text_of(value, ("exchange",), place),
        routing_key=text_of(value, ("routingKey", "routing_key"), place),
    )


def body_of(value: dict[str, JsonValue], place: str) -> bytes:
    name = next((name for name in ("body", "bodyBase64", "payload") if name in value), "body")
    text = value.get(name)
    if not isinstance(text, str):
        raise InputUnreadable(f"{place}: {name}: no text")
    if name == "bodyBase64" or (name == "payload" and value.get("payload_encoding") == "base64"):
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error is one; so is that of a text beyond ASCII
            raise InputUnreadable(f"{place}: {name}: not base64") from None
    return text.encode()


def text_of(value: dict[str, JsonValue], names: tuple[str, ...], place: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str):
            return found
        if found is not None:
            raise InputUnreadable(f"{place}: {name}: no text")
    return None
