"""The plain way to a document's JSON: what the writer is held to."""

from decimal import Decimal
from typing import Any

from bson import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)

from fetcher_engine import encode_text, encode_value


def reference(document: dict[str, Any]) -> str:
    """By the table of spec datasources 10.6, from Python values."""
    members = sorted(document.items())
    return f"{{{','.join(f'{encode_text(name)}:{_text(value)}' for name, value in members)}}}"


def _text(value: Any) -> str:  # noqa: PLR0911, PLR0912 - a table
    match value:
        case dict():
            return f"{{{','.join(f'{encode_text(k)}:{_text(v)}' for k, v in value.items())}}}"
        case list():
            return f"[{','.join(map(_text, value))}]"
        case ObjectId():
            return f'"{value}"'
        case DatetimeMS():
            return _date(int(value))
        case Decimal128():
            decimal: Decimal = value.to_decimal()
            return f'"{decimal}"'
        case Code():
            return encode_text(str(value))
        case bytes():  # Binary too
            text = bytes(value).hex()
            if len(value) == 16:
                text = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
            return f'"{text}"'
        case Regex():
            return f'{{"Pattern":{encode_text(str(value.pattern))},"Options":"{_flags(value)}"}}'
        case Timestamp():
            return f'{{"T":{value.time},"I":{value.inc}}}'
        case MinKey():
            return '{"$minKey":1}'
        case MaxKey():
            return '{"$maxKey":1}'
        case int() if not isinstance(value, bool):
            return str(int(value))
    return encode_value(value)


def _date(ms: int) -> str:
    if not -62_135_596_800_000 <= ms < 253_402_300_800_000:
        return f'"{ms}"'
    return encode_value(DatetimeMS(ms).as_datetime())


def _flags(value: "Regex[str]") -> str:
    return "".join(letter for letter, bit in (("i", 2), ("m", 8), ("s", 16)) if value.flags & bit)


__all__ = ["Binary", "reference"]
