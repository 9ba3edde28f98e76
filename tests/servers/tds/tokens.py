"""TDS tokens as a server writes them (MS-TDS 2.2.7), and the requests that it reads."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

COLLATION = bytes.fromhex("0904d00034")
"""SQL_Latin1_General_CP1_CI_AS."""

DONE, DONEPROC, DONEINPROC = 0xFD, 0xFE, 0xFF
MORE, ERROR, COUNT, STOPPED = 0x01, 0x02, 0x10, 0x20

_TYPES = {
    "tinyint not null": bytes([0x30]),
    "smallint not null": bytes([0x34]),
    "int not null": bytes([0x38]),
    "bigint not null": bytes([0x7F]),
    "bit not null": bytes([0x32]),
    "real not null": bytes([0x3B]),
    "float not null": bytes([0x3E]),
    "tinyint": bytes([0x26, 1]),
    "smallint": bytes([0x26, 2]),
    "int": bytes([0x26, 4]),
    "bigint": bytes([0x26, 8]),
    "bit": bytes([0x68, 1]),
    "real": bytes([0x6D, 4]),
    "float": bytes([0x6D, 8]),
    "nvarchar": b"\xe7" + struct.pack("<H", 8000) + COLLATION,
    "varbinary": b"\xa5" + struct.pack("<H", 8000),
    "varbinary(max)": b"\xa5\xff\xff",
}
_NUMBERS = {
    "tinyint": "<B",
    "smallint": "<h",
    "int": "<i",
    "bigint": "<q",
    "bit": "<B",
    "real": "<f",
    "float": "<d",
}
_PIECE_BYTES = 3000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer: one of the types that the connector's expressions give."""

    type: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ServerError:
    """An ERROR token; the text is a canary: it must not get out of the client."""

    number: int
    text: str = "canary-server-text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a statement gets. After its rows: errors, a cut, silence, or the end.

    ``rows`` may have no end. ``counted`` is what the server says it sent, where that is a lie.
    ``in_row`` cuts the connection in the middle of the row that would follow.
    """

    columns: Sequence[Column] = ()
    rows: Iterable[Sequence[object]] = ()
    errors: Sequence[ServerError] = ()
    cut: bool = False
    in_row: bool = False
    hang: bool = False
    deaf: bool = False
    """Attention is not answered either."""
    counted: int | None = None
    transaction: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """A LOGIN7 message."""

    user: str
    password: str = field(repr=False)
    database: str
    server: str
    application: str
    read_only: bool
    encrypted: bool
    packet_bytes: int


def columns_token(columns: Sequence[Column]) -> bytes:
    token = b"\x81" + struct.pack("<H", len(columns))
    for column in columns:
        token += struct.pack("<IH", 0, 1) + _TYPES[column.type]
        token += bytes([len(column.name)]) + column.name.encode("utf-16-le")
    return token


def row_token(columns: Sequence[Column], row: Sequence[object]) -> bytes:
    """A ROW, or a NBCROW where something is NULL."""
    if None not in row:
        return b"\xd1" + b"".join(map(_cell, columns, row))
    bits = sum(1 << number for number, value in enumerate(row) if value is None)
    cells = (
        _cell(column, value)
        for column, value in zip(columns, row, strict=True)
        if value is not None
    )
    return b"\xd2" + bits.to_bytes((len(row) + 7) // 8, "little") + b"".join(cells)


def _cell(column: Column, value: object) -> bytes:
    plain = column.type.removesuffix(" not null")
    if plain in _NUMBERS:
        data = struct.pack(_NUMBERS[plain], value)
        # a column that is never NULL has a type of fixed length
        return data if plain != column.type else bytes([len(data)]) + data
    data = value.encode("utf-16-le") if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
    if column.type != "varbinary(max)":
        return struct.pack("<H", len(data)) + data
    pieces = [data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES)]
    return (
        struct.pack("<Q", len(data))
        + b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces)
        + struct.pack("<I", 0)
    )


def done_token(kind: int, status: int, count: int = 0) -> bytes:
    return struct.pack("<BHHQ", kind, status, 0xC1, count)


def error_token(error: ServerError) -> bytes:
    body = struct.pack("<iBBH", error.number, 1, 16, len(error.text))
    body += error.text.encode("utf-16-le") + bytes([4]) + "fake".encode("utf-16-le")
    body += bytes([0]) + struct.pack("<i", 1)
    return b"\xaa" + struct.pack("<H", len(body)) + body


def change_token(kind: int, new: bytes, old: bytes = b"\0") -> bytes:
    body = bytes([kind]) + new + old
    return b"\xe3" + struct.pack("<H", len(body)) + body


def text_change(kind: int, new: str) -> bytes:
    return change_token(kind, bytes([len(new)]) + new.encode("utf-16-le"))


def collation_change() -> bytes:
    return change_token(7, bytes([len(COLLATION)]) + COLLATION)


def transaction_change() -> bytes:
    return change_token(8, bytes([8]) + (77).to_bytes(8, "little"))


def route_change(host: str, port: int) -> bytes:
    route = struct.pack("<BHH", 0, port, len(host)) + host.encode("utf-16-le")
    return change_token(20, struct.pack("<H", len(route)) + route, b"\0\0")


def login_token() -> bytes:
    name = "Fake SQL Server"
    body = b"\x01" + bytes.fromhex("74000004") + bytes([len(name)]) + name.encode("utf-16-le")
    body += bytes([16, 0, 0, 0])
    return b"\xad" + struct.pack("<H", len(body)) + body


def read_login(body: bytes, *, encrypted: bool) -> Login:
    def text(place: int) -> bytes:
        offset, length = struct.unpack_from("<HH", body, place)
        return body[offset : offset + 2 * length]

    scrambled = text(44)
    plain = bytes(((byte ^ 0xA5) >> 4) | (((byte ^ 0xA5) << 4) & 0xF0) for byte in scrambled)
    return Login(
        user=text(40).decode("utf-16-le"),
        password=plain.decode("utf-16-le"),
        application=text(48).decode("utf-16-le"),
        server=text(52).decode("utf-16-le"),
        database=text(68).decode("utf-16-le"),
        read_only=bool(body[26] & 0x20),
        encrypted=encrypted,
        packet_bytes=struct.unpack_from("<I", body, 8)[0],
    )


def read_batch(body: bytes) -> str:
    (headers,) = struct.unpack_from("<I", body)
    return body[headers:].decode("utf-16-le")


def read_call(body: bytes) -> list[object]:
    """The parameters of sp_executesql: the statement, their declarations, their values."""
    (at,) = struct.unpack_from("<I", body)
    assert body[at : at + 4] == b"\xff\xff\x0a\0"
    at += 6
    values: list[object] = []
    while at < len(body):
        at += 1 + 2 * body[at] + 1
        value, at = _value(body, at)
        values.append(value)
    return values


def _value(body: bytes, at: int) -> tuple[object, int]:
    kind = body[at]
    if kind == 0x6D:
        return struct.unpack_from("<d", body, at + 3)[0], at + 11
    assert kind == 0xE7
    (size,) = struct.unpack_from("<H", body, at + 1)
    at += 8
    if size != 0xFFFF:
        (length,) = struct.unpack_from("<H", body, at)
        return body[at + 2 : at + 2 + length].decode("utf-16-le"), at + 2 + length
    at += 8
    data = b""
    while True:
        (length,) = struct.unpack_from("<I", body, at)
        at += 4
        if not length:
            return data.decode("utf-16-le"), at
        data += body[at : at + length]
        at += length
