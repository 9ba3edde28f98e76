"""What somebody without the keys makes of genuine messages and objects, drawn by a seed."""

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.unit.crypto import vectors

FOREIGN_TEXTS: Final = (
    *("", " ", "0", "a", "single-tenant", "tenant-b", "é", "\ud800", "\x00", "a\nb", "v1", "v2"),
    *(vectors.JOB_ID, vectors.WORK_QUEUE, "job.failed", "fetcher.dlx", "9" * 25, "-1"),
)
FOREIGN_VALUES: Final[tuple[object, ...]] = (
    *(None, True, 0, -1, 2**70, 1.5, b"", b"\xff", [], {}),
    *FOREIGN_TEXTS,
)


@dataclass(frozen=True)
class Message:
    """One delivery as its receiver sees it."""

    headers: Mapping[str, object]
    body: bytes
    exchange: str
    routing_key: str

    def says(self) -> tuple[object, ...]:
        """What a signature is about. A time counts by its value, however it is written."""
        signature = self.headers.get("x-message-signature")
        stamp = self.headers.get("t")
        if isinstance(stamp, str):
            digits = stamp.removeprefix("+")
            stamp = int(digits) if digits.isascii() and digits.isdigit() else stamp
        version = self.headers.get("signature-version")
        tenant = self.headers.get("X-Tenant-ID", "")
        route = (self.exchange, self.routing_key)
        return (signature, type(stamp), stamp, version, tenant, *route, self.body)


def mutated_bytes(draw: random.Random, data: bytes) -> bytes:
    """``data`` with one to three changes; it may be the same again."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        data = draw.choice(_BYTE_CHANGES)(draw, data)
    return data


def _flipped(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b"\0")
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return draw.choice((data[:at], data[at:]))


def _with_a_piece_out(draw: random.Random, data: bytes) -> bytes:
    start, end = _span(draw, data)
    return data[:start] + data[end:]


def _with_a_piece_twice(draw: random.Random, data: bytes) -> bytes:
    start, end = _span(draw, data)
    return data[:end] + data[start:]


def _with_a_piece_in(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.randbytes(draw.randint(1, 40)) + data[at:]


def _with_neighbours_swapped(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(max(len(data) - 1, 1))
    return data[:at] + data[at : at + 2][::-1] + data[at + 2 :]


_BYTE_CHANGES: Final = (
    _flipped,
    _flipped,
    _cut,
    _with_a_piece_out,
    _with_a_piece_twice,
    _with_a_piece_in,
    _with_neighbours_swapped,
)


def _span(draw: random.Random, data: bytes) -> tuple[int, int]:
    start, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return start, end


def _mutated_text(draw: random.Random, text: str) -> str:
    if draw.random() < 0.3:
        return draw.choice(FOREIGN_TEXTS)
    return mutated_bytes(draw, text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _with_another_body(draw: random.Random, message: Message, _: Message) -> Message:
    return replace(message, body=mutated_bytes(draw, message.body))


def _with_another_route(draw: random.Random, message: Message, _: Message) -> Message:
    if draw.random() < 0.5:
        return replace(message, exchange=_mutated_text(draw, message.exchange))
    return replace(message, routing_key=_mutated_text(draw, message.routing_key))


def _replayed(draw: random.Random, message: Message, other: Message) -> Message:
    """What was signed for another message, on this one."""
    match draw.randrange(3):
        case 0:
            return replace(message, headers=other.headers)
        case 1:
            return replace(message, body=other.body)
        case _:
            return replace(message, exchange=other.exchange, routing_key=other.routing_key)


def _with_another_header(draw: random.Random, message: Message, _: Message) -> Message:
    headers = dict(message.headers)
    name = draw.choice(list(headers))
    match draw.randrange(3):
        case 0:
            del headers[name]
        case 1:
            headers[name] = draw.choice(FOREIGN_VALUES)
        case _:
            headers[name] = _mutated_text(draw, str(headers[name]))
    return replace(message, headers=headers)


_MESSAGE_CHANGES: Final = (
    _with_another_body,
    _with_another_route,
    _replayed,
    _with_another_header,
    _with_another_header,
)


def mutated_messages(seed: int, genuine: Sequence[Message], count: int) -> Iterator[Message]:
    """``count`` messages that say nothing that any of the genuine ones says."""
    draw = random.Random(seed)  # noqa: S311 - the same ones for the same seed
    said = [message.says() for message in genuine]
    left = count
    while left:
        change = draw.choice(_MESSAGE_CHANGES)
        message = change(draw, draw.choice(genuine), draw.choice(genuine))
        if message.says() not in said:
            left -= 1
            yield message


def mutated_objects(seed: int, genuine: bytes, count: int) -> Iterator[bytes]:
    """``count`` texts other than a sealed result, half of them with the change under the base64."""
    draw = random.Random(seed)  # noqa: S311 - the same ones for the same seed
    raw = base64.b64decode(genuine)
    left = count
    while left:
        if draw.random() < 0.5:
            changed = base64.b64encode(mutated_bytes(draw, raw))
        else:
            changed = mutated_bytes(draw, genuine)
        if changed != genuine:
            left -= 1
            yield changed
