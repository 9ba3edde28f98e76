"""Rows as compact JSON, column by column: loops over values run in C, not in Python.

Each function gives exactly what :func:`encode_value` makes of each value. Only values whose exact
type is known are written by column; anything else is written on its own.
"""

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import chain, islice, repeat
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from fetcher_engine.json_values import BY_TYPE, MAX_DEPTH, NotEncodable, encode_other, encode_text

Column: TypeAlias = tuple[str, Sequence[str], str]
"""What stands before each text, one text a value, what stands after each."""

_MAX_ITEMS = 64 * 1024
"""Items of arrays that are laid side by side; cyclic arrays would multiply with each level."""

_MAX_SPARSENESS = 4
"""Columns are laid out while at most this many places are there for each value."""

_FEW = 4
"""With fewer objects of one shape than this, laying out columns costs more than it brings."""

_NOTHING = type(None)


def encode_rows(rows: Sequence[Mapping[str, object]]) -> Sequence[str] | None:
    """One JSON object a row, columns in byte order; None for rows that share too few columns.

    Raise anything where a row cannot be written; writing the rows one by one tells which.
    """
    objects: Sequence[dict[str, Any]] = [
        row if type(row) is dict else {name: row[name] for name in row} for row in rows
    ]
    names = _in_order(objects[0])
    if set(map(len, objects)) == {len(names)}:
        try:
            return _encode_alike(names, objects)
        except KeyError:
            pass  # as many columns, but not the same
    names = _in_order(set().union(*objects))
    if len(names) * len(objects) > _MAX_SPARSENESS * sum(map(len, objects)):
        return None
    members = zip(*[_sparse_members(name, objects) for name in names], strict=True)
    return [f"{{{text[1:]}}}" for text in map("".join, members)]


def _in_order(names: Iterable[str]) -> list[str]:
    ordered = sorted(names)
    if not set(map(type, ordered)) <= {str}:
        raise NotEncodable
    return ordered


def _encode_alike(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> Sequence[str]:
    if not names:
        return ["{}"] * len(rows)
    if len(names) == 1:
        return _objects(names, [[row[names[0]] for row in rows]], depth=0)
    return _objects(names, zip(*map(itemgetter(*names), rows), strict=True), depth=0)


def _objects(
    names: Sequence[str], columns: Iterable[Sequence[Any]], *, depth: int
) -> Sequence[str]:
    parts: list[Iterable[str]] = []
    lead = "{"
    for name, values in zip(names, columns, strict=True):
        before, texts, after = encode_column(values, depth)
        parts += repeat(f"{lead}{encode_text(name)}:{before}"), texts
        lead = f"{after},"
    parts.append(repeat(f"{lead[:-1]}}}"))
    return list(map("".join, zip(*parts)))  # noqa: B905 - repeat() has no end


def _sparse_members(name: str, rows: Sequence[dict[str, Any]]) -> Sequence[str]:
    before, texts, after = encode_column([row[name] for row in rows if name in row], depth=0)
    lead = f",{encode_text(name)}:{before}"
    text = iter(texts)
    return [f"{lead}{next(text)}{after}" if name in row else "" for row in rows]


def encode_column(values: Sequence[Any], depth: int) -> Column:
    """The values, each as :func:`encode_value` writes it at ``depth``."""
    kinds = set(map(type, values))
    if len(kinds) == 1:
        return _encode_kind(kinds.pop(), values, depth)
    if len(kinds) == 2 and _NOTHING in kinds:
        kinds.remove(_NOTHING)
        return _encode_nullable(kinds.pop(), values, depth)
    return "", _one_by_one(values, depth), ""


def _encode_kind(kind: type, values: Sequence[Any], depth: int) -> Column:
    if kind in BY_TYPE:
        by_column = _BY_COLUMN.get(kind)
        column = None if by_column is None else by_column(values)
        return ("", list(map(BY_TYPE[kind], values)), "") if column is None else column
    if depth <= MAX_DEPTH and len(values) >= _FEW:
        if kind is dict:
            return "", _encode_dicts(values, depth), ""
        if kind is list or kind is tuple:
            return "", _encode_arrays(values, depth), ""
    return "", [encode_other(value, depth) for value in values], ""


def _encode_nullable(kind: type, values: Sequence[Any], depth: int) -> Column:
    if kind is str:
        return "", ["null" if value is None else encode_text(value) for value in values], ""
    present = [value for value in values if value is not None]
    before, texts, after = _encode_kind(kind, present, depth)
    text = iter(texts)
    return "", ["null" if v is None else f"{before}{next(text)}{after}" for v in values], ""


def _one_by_one(values: Iterable[Any], depth: int) -> Sequence[str]:
    get = BY_TYPE.get
    return [encode_other(v, depth) if (f := get(type(v))) is None else f(v) for v in values]


def _encode_dicts(values: Sequence[dict[Any, Any]], depth: int) -> Sequence[str]:
    shapes = list(map(tuple, values))
    names = shapes[0]
    if shapes.count(names) == len(shapes) and set(map(type, names)) == {str}:
        return _objects(names, zip(*map(dict.values, values), strict=True), depth=depth + 1)
    return [encode_other(value, depth) for value in values]


def _encode_arrays(values: Sequence[Sequence[Any]], depth: int) -> Sequence[str]:
    sizes = list(map(len, values))
    if not 0 < sum(sizes) <= _MAX_ITEMS:
        return [encode_other(value, depth) for value in values]
    before, texts, after = encode_column(list(chain.from_iterable(values)), depth + 1)
    between = f"{after},{before}"
    text = iter(texts)
    return [
        f"[{before}{between.join(islice(text, size))}{after}]" if size else "[]" for size in sizes
    ]


def _ints(values: Sequence[int]) -> Column:
    return "", list(map(int.__repr__, values)), ""


def _floats(values: Sequence[float]) -> Column | None:
    joined = ",".join(map(float.__repr__, values))
    if "e" in joined or "n" in joined:
        return None
    return "", f"{joined},".replace(".0,", ",").split(",")[:-1], ""


def _decimals(values: Sequence[Decimal]) -> Column | None:
    texts = list(map(str, values))
    joined = ",".join(texts)
    return None if "E" in joined or "N" in joined else ('"', texts, '"')


def _datetimes(values: Sequence[datetime]) -> Column | None:
    zones = set(map(attrgetter("tzinfo"), values))
    if zones == {None}:
        texts = list(map(datetime.isoformat, values))
    elif zones == {UTC}:
        texts = [text[:-6] for text in map(datetime.isoformat, values)]
    else:
        return None
    return '"', [text.rstrip("0") if len(text) > 19 else text for text in texts], 'Z"'


def _dates(values: Sequence[date]) -> Column:
    return '"', list(map(date.isoformat, values)), 'T00:00:00Z"'


def _bytes(values: Sequence[bytes]) -> Column:
    joined = b",".join(map(partial(b2a_base64, newline=False), values))
    return '"', joined.decode("ascii").split(","), '"'


_BY_COLUMN: dict[type, Callable[[Any], Column | None]] = {
    int: _ints,
    float: _floats,
    Decimal: _decimals,
    datetime: _datetimes,
    date: _dates,
    bytes: _bytes,
}
"""Kinds whose columns have a quicker way; None where these values have not."""
