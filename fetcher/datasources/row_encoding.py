"""Rows by orjson, where that gives exactly the bytes of the Engine's own way (decision 019)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any, Final
from uuid import UUID

import orjson

from fetcher_engine import encode_value

_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS

_MAX_DEPTH: Final = 64
"""Deeper rows are the Engine's: it judges how deep is too deep."""

_MAX_ITEMS: Final = 256 * 1024
"""Values on one level of the rows: what is cyclic has more on each."""

_SAMPLE: Final = 16
"""Rows whose texts tell how long those of the others are."""

_ASKED_BACK: Final = frozenset({Decimal, datetime, date, bytes, bytearray})
_LEAVES: Final = frozenset({str, bool, int, float, type(None), UUID}) | _ASKED_BACK
_CONTAINERS: Final = frozenset({dict, list, tuple})


class OrjsonRowEncoding:
    """Implements :class:`fetcher_engine.RowEncoding`, with the Engine's own bytes.

    Equal bytes, not only equal values: the Engine writes what is refused here, and how a source
    cuts its rows must not show in the result.

    orjson raises for integers beyond 64 bits, lone surrogates and keys that are no text. It would
    write NaN as null, the value of any Enum, and some floats otherwise: these are looked for.
    """

    def encode(self, rows: Sequence[Mapping[str, object]]) -> bytes | None:
        plain: list[dict[str, Any]] = [row for row in rows if type(row) is dict]
        if len(plain) < len(rows) or not _are_long_rows_or_alike(plain):
            return None
        values = list(chain.from_iterable(map(dict.values, plain)))
        if not _is_worthwhile(values):
            return None
        in_order = _in_order(plain)
        if not _are_written_alike(values):
            _write_whole_floats_as_integers(in_order)
            values = list(chain.from_iterable(map(dict.values, in_order)))
        return orjson.dumps(in_order, _default, _OPTIONS)[1:-1] if _is_exact(values) else None


def _in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """New rows, their columns in byte order."""
    if set(map(len, rows)) == {len(rows[0])}:
        ordered: dict[str, Any] = dict.fromkeys(sorted(rows[0]))
        in_order = list(map(ordered.__or__, rows))
        if set(map(len, in_order)) == {len(ordered)}:
            return in_order
    return [{name: row[name] for name in sorted(row)} for row in rows]


def _are_long_rows_or_alike(rows: Sequence[dict[str, Any]]) -> bool:
    """Rows of changing shape are put in order one by one, which only long texts make up for."""
    if len(set(map(len, rows))) == 1:
        return True
    first = list(chain.from_iterable(map(dict.values, rows[:_SAMPLE])))
    return _text_size(first) >= 30 * len(first)


def _is_worthwhile(values: Sequence[object]) -> bool:
    """orjson asks back for each of some kinds, which costs more than it saves on three others.

    It is much quicker with long texts. Measured: decision 019.
    """
    kinds = list(map(type, values))
    asked_back = sum(map(kinds.count, _ASKED_BACK))
    return asked_back * 4 <= len(values) or _text_size(values) >= 100 * asked_back


def _text_size(values: Sequence[object]) -> int:
    return sum([len(value) for value in values if type(value) is str])


def _are_written_alike(values: Sequence[object]) -> bool:
    """Whether the floats are such that orjson and the Engine write with the same digits alone."""
    floats = [value for value in values if type(value) is float]
    return all(1e-3 <= abs(value) < 1e15 for value in floats) and not any(
        map(float.is_integer, floats)
    )


def _write_whole_floats_as_integers(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        for name, value in row.items():
            if type(value) is float and value.is_integer() and abs(value) < 1e15:
                row[name] = value if str(value) == "-0.0" else int(value)


def _is_exact(level: Sequence[Any]) -> bool:
    for _ in range(_MAX_DEPTH):
        kinds = set(map(type, level))
        if not kinds <= _LEAVES | _CONTAINERS:
            return False
        if float in kinds and not _are_written_alike(level):
            return False
        if kinds.isdisjoint(_CONTAINERS):
            return True
        containers = [value for value in level if type(value) in _CONTAINERS]
        if sum(map(len, containers)) > _MAX_ITEMS:
            return False
        level = list(chain.from_iterable(map(_items, containers)))
    return False


def _items(container: Any) -> Iterable[Any]:
    return container.values() if type(container) is dict else container


def _default(value: object) -> str:
    """Decimal, datetime, date, bytes: texts of the Engine that nothing is escaped in."""
    return encode_value(value)[1:-1]
