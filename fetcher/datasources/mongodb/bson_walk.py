"""BSON to JSON, element by element: exact for every document, and what templates are learned from.

Nested keys stay as stored. Of a key that a document has twice the last one counts, as in a decoder
that makes dictionaries.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from fetcher.datasources.mongodb.types import (
    DECIMAL128,
    DOUBLE,
    INT32,
    INT64,
    TIMESTAMP,
    binary_text,
    date_text,
    decimal_text,
    regex_text,
    timestamp_text,
)
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text, encode_value

MAX_DEPTH: Final = 200
"""MongoDB itself stores at most 100 levels."""

LARGEST_SAFE: Final = 2**53

_Cell: TypeAlias = tuple[str, int]
_Reader: TypeAlias = Callable[[bytes, int, int], _Cell]


class MalformedBson(Exception):
    """The bytes are no BSON that any MongoDB sends."""


class InvalidText(Exception):
    """A text that is not UTF-8. It says nothing about the text."""


class BsonWalker:
    """Renders documents for one request's options.

    Names of fields are never replaced: two could become one.
    """

    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self._decoded = (texts or Texts()).decoded
        self.writes_bigint_as_text = options.bigint == "string"
        self._decimal_number = options.decimals == "number"
        self._readers: dict[int, _Reader] = {
            0x01: self._double,
            0x02: self._string,
            0x03: self._nested,
            0x04: self._array,
            0x05: self._binary,
            0x06: lambda _, at, __: ("null", at),
            0x07: lambda data, at, _: (f'"{data[at : at + 12].hex()}"', at + 12),
            0x08: lambda data, at, _: ("true" if data[at] else "false", at + 1),
            0x09: self._date,
            0x0A: lambda _, at, __: ("null", at),
            0x0B: self._regex,
            0x0C: self._pointer,
            0x0D: self._string,
            0x0E: self._string,
            0x0F: self._scoped_code,
            0x10: self._int32,
            0x11: self._timestamp,
            0x12: self._int64,
            0x13: self._decimal,
            0x7F: lambda _, at, __: ('{"$maxKey":1}', at),
            0xFF: lambda _, at, __: ('{"$minKey":1}', at),
        }

    def members(self, data: bytes) -> dict[str, str]:
        """The top-level fields of one document, each with its JSON text.

        Raise MalformedBson, or InvalidText, whose argument is the field.
        """
        found: dict[str, str] = {}
        name = ""
        try:
            end = _ending(data, 0, len(data))
            at = 4
            while at < end:
                name = ""
                kind = data[at]
                at, name = _key(data, at + 1, end)
                found[name], at = self._readers[kind](data, at, 1)
        except UnicodeDecodeError:
            failure: Exception = InvalidText(name)
        except (KeyError, IndexError, ValueError, RecursionError):
            failure = MalformedBson()
        except Exception as error:  # noqa: BLE001 - struct.error is no ValueError
            failure = error if isinstance(error, MalformedBson) else MalformedBson()
        else:
            if at == end and end + 1 == len(data):
                return found
            failure = MalformedBson()
        raise failure

    def document(self, data: bytes) -> str:
        """A whole document as one JSON object, its top-level fields in byte order."""
        found = self.members(data)
        return f"{{{','.join([f'{encode_text(name)}:{found[name]}' for name in sorted(found)])}}}"

    def _nested(self, data: bytes, at: int, depth: int) -> _Cell:
        end = self._inner_end(data, at, depth)
        found: dict[str, str] = {}
        at += 4
        readers = self._readers
        while at < end:
            kind = data[at]
            at, name = _key(data, at + 1, end)
            found[name], at = readers[kind](data, at, depth + 1)
        _require(at == end)
        return f"{{{','.join([f'{encode_text(key)}:{text}' for key, text in found.items()])}}}", (
            end + 1
        )

    def _array(self, data: bytes, at: int, depth: int) -> _Cell:
        """The keys are positions; whatever they are, the order is that of the elements."""
        end = self._inner_end(data, at, depth)
        texts: list[str] = []
        at += 4
        readers = self._readers
        while at < end:
            kind = data[at]
            at = data.index(b"\0", at + 1, end) + 1
            text, at = readers[kind](data, at, depth + 1)
            texts.append(text)
        _require(at == end)
        return f"[{','.join(texts)}]", end + 1

    def _inner_end(self, data: bytes, at: int, depth: int) -> int:
        _require(depth < MAX_DEPTH)
        return _ending(data, at, len(data))

    def _double(self, data: bytes, at: int, _: int) -> _Cell:
        return encode_value(DOUBLE.unpack_from(data, at)[0]), at + 8

    def _string(self, data: bytes, at: int, _: int) -> _Cell:
        text, end = self._text(data, at)
        return encode_text(text), end

    def _binary(self, data: bytes, at: int, _: int) -> _Cell:
        start = at + 5
        end = start + INT32.unpack_from(data, at)[0]
        _require(start <= end < len(data))
        if data[at + 4] == 2 and end - start >= 4:
            start += 4  # subtype 2 repeats the length inside
        return binary_text(data[start:end]), end

    def _date(self, data: bytes, at: int, _: int) -> _Cell:
        return date_text(INT64.unpack_from(data, at)[0]), at + 8

    def _regex(self, data: bytes, at: int, _: int) -> _Cell:
        middle = data.index(b"\0", at)
        end = data.index(b"\0", middle + 1)
        pattern = self._decoded(data[at:middle])
        flags = self._decoded(data[middle + 1 : end])
        return regex_text(pattern, flags), end + 1

    def _pointer(self, data: bytes, at: int, _: int) -> _Cell:
        name, at = self._text(data, at)
        return f'{{"DB":{encode_text(name)},"Pointer":"{data[at : at + 12].hex()}"}}', at + 12

    def _scoped_code(self, data: bytes, at: int, depth: int) -> _Cell:
        code, at = self._text(data, at + 4)
        scope, at = self._nested(data, at, depth)
        return f'{{"Code":{encode_text(code)},"Scope":{scope}}}', at

    def _int32(self, data: bytes, at: int, _: int) -> _Cell:
        return str(INT32.unpack_from(data, at)[0]), at + 4

    def _int64(self, data: bytes, at: int, _: int) -> _Cell:
        return self.int64_text(INT64.unpack_from(data, at)[0]), at + 8

    def _timestamp(self, data: bytes, at: int, _: int) -> _Cell:
        return timestamp_text(*TIMESTAMP.unpack_from(data, at)), at + 8

    def _decimal(self, data: bytes, at: int, _: int) -> _Cell:
        return self.decimal_cell(*DECIMAL128.unpack_from(data, at)), at + 16

    def _text(self, data: bytes, at: int) -> tuple[str, int]:
        end = at + 4 + int(INT32.unpack_from(data, at)[0])
        _require(at + 4 < end < len(data) and data[end - 1] == 0)
        return self._decoded(data[at + 4 : end - 1]), end

    def int64_text(self, value: int) -> str:
        if self.writes_bigint_as_text and not -LARGEST_SAFE <= value <= LARGEST_SAFE:
            return f'"{value}"'
        return str(value)

    def decimal_cell(self, low: int, high: int) -> str:
        text = decimal_text(low, high)
        if self._decimal_number and text[-1] not in "Ny":  # NaN, Infinity
            return text
        return f'"{text}"'

    def decimal_template(self, scale: int) -> str:
        """For ``%`` with the whole part and the fraction of a decimal that is not negative."""
        quote = "" if self._decimal_number else '"'
        return f"{quote}%d.%0{scale}d{quote}"


def _key(data: bytes, at: int, end: int) -> tuple[int, str]:
    stop = data.index(b"\0", at, end)
    return stop + 1, data[at:stop].decode()


def _ending(data: bytes, at: int, limit: int) -> int:
    """Where the document's closing NUL stands."""
    end = at + int(INT32.unpack_from(data, at)[0]) - 1
    _require(at + 4 <= end < limit and data[end] == 0)
    return end


def _require(holds: bool) -> None:
    if not holds:
        raise MalformedBson
