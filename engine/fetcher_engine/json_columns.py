"""Rows as compact JSON, column by column: loops over values run in C, not in Python.

Each function gives exactly what :func:`encode_value` makes of each value. Only values whose exact
type is known are written by column; anything else is written on its own.
"""

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import accumulate, chain, pairwise, repeat
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


class _Absent:
    """What stands where a row has no such column."""


_ABSENT = _Absent()

_CONSTANTS = {bool, _NOTHING}

_PLAIN: dict[type, Callable[[Any], str]] = {
    str: encode_text,
    int: int.__repr__,
    bool: BY_TYPE[bool],
}
"""Kinds whose values may be told from others and written in one go."""


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
            return _objects(names, objects, depth=0) if names else ["{}"] * len(objects)
        except KeyError:
            pass  # as many columns, but not the same
    names = _in_order(set().union(*objects))
    if len(names) * len(objects) > _MAX_SPARSENESS * sum(map(len, objects)):
        return None
    return _encode_sparse(names, objects)


def _encode_sparse(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> Sequence[str]:
    nothing: dict[str, Any] = dict.fromkeys(names, _ABSENT)
    columns = list(zip(*map(dict.values, map(nothing.__or__, rows)), strict=True))
    is_first_everywhere = _Absent not in set(map(type, columns[0]))
    comma = "{" if is_first_everywhere else ","
    parts: list[Iterable[str]] = []
    for name, values in zip(names, columns, strict=True):
        parts += _sparse_members(f"{comma}{encode_text(name)}:", values)
        comma = ","
    if is_first_everywhere:
        return list(map("".join, zip(*parts, repeat("}"))))
    return [f"{{{text[1:]}}}" for text in map("".join, zip(*parts, strict=False))]


def _in_order(names: Iterable[str]) -> list[str]:
    ordered = sorted(names)
    if not set(map(type, ordered)) <= {str}:
        raise NotEncodable
    return ordered


def _objects(
    names: Sequence[str], objects: Sequence[dict[str, Any]], *, depth: int
) -> Sequence[str]:
    parts: list[Iterable[str]] = []
    lead = "{"
    for name in names:
        before, texts, after = encode_column(list(map(itemgetter(name), objects)), depth)
        parts += repeat(f"{lead}{encode_text(name)}:{before}"), texts
        lead = f"{after},"
    parts.append(repeat(f"{lead[:-1]}}}"))
    return list(map("".join, zip(*parts)))  # noqa: B905 - repeat() has no end


def _sparse_members(lead: str, values: Sequence[Any]) -> tuple[Iterable[str], ...]:
    """What each row has of a column, ``lead`` before it; in parts that are to be joined."""
    kinds = set(map(type, values))
    if _Absent not in kinds:
        before, texts, after = encode_column(values, depth=0)
        return repeat(lead + before), texts, repeat(after)
    kinds.remove(_Absent)
    if kinds <= _CONSTANTS:
        members = {True: f"{lead}true", False: f"{lead}false", None: f"{lead}null", _ABSENT: ""}
        return (list(map(members.__getitem__, values)),)
    if kinds == {int}:
        return (["" if v is _ABSENT else f"{lead}{v}" for v in values],)
    kinds.discard(_NOTHING)
    encode = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
    if encode is not None:
        null = f"{lead}null"
        texts = ["" if v is _ABSENT else null if v is None else lead + encode(v) for v in values]
        return (texts,)
    before, texts, after = encode_column([v for v in values if v is not _ABSENT], depth=0)
    lead += before
    text = iter(texts)
    return (["" if v is _ABSENT else f"{lead}{next(text)}{after}" for v in values],)


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
            return _encode_arrays(values, depth)
    return "", [encode_other(value, depth) for value in values], ""


def _encode_nullable(kind: type, values: Sequence[Any], depth: int) -> Column:
    if (encode := _PLAIN.get(kind)) is not None:
        return "", ["null" if value is None else encode(value) for value in values], ""
    present = [value for value in values if value is not None]
    before, texts, after = _encode_kind(kind, present, depth)
    text = iter(texts)
    return "", ["null" if v is None else f"{before}{next(text)}{after}" for v in values], ""


def _one_by_one(values: Iterable[Any], depth: int) -> Sequence[str]:
    get = BY_TYPE.get
    return [encode_other(v, depth) if (f := get(type(v))) is None else f(v) for v in values]


def _encode_dicts(values: Sequence[dict[Any, Any]], depth: int) -> Sequence[str]:
    names = tuple(values[0])
    if all(map(names.__eq__, map(tuple, values))):
        return _encode_shape(names, values, depth)
    shapes = list(map(tuple, values))
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for shape, value in zip(shapes, values, strict=True):
        groups.setdefault(shape, []).append(value)
    if len(groups) * _FEW > len(values):
        return [encode_other(value, depth) for value in values]
    texts = {shape: iter(_encode_shape(shape, group, depth)) for shape, group in groups.items()}
    return [next(texts[shape]) for shape in shapes]


def _encode_shape(
    names: tuple[Any, ...], values: Sequence[dict[Any, Any]], depth: int
) -> Sequence[str]:
    if set(map(type, names)) == {str}:
        return _objects(names, values, depth=depth + 1)
    return [encode_other(value, depth) for value in values]


def _encode_arrays(values: Sequence[Sequence[Any]], depth: int) -> Column:
    sizes = list(map(len, values))
    if not 0 < sum(sizes) <= _MAX_ITEMS:
        return "", [encode_other(value, depth) for value in values], ""
    before, texts, after = encode_column(list(chain.from_iterable(values)), depth + 1)
    between = f"{after},{before}"
    if len(set(sizes)) == 1:
        arrays = zip(*[iter(texts)] * sizes[0], strict=True)
        return f"[{before}", list(map(between.join, arrays)), f"{after}]"
    places = pairwise(accumulate(sizes, initial=0))
    joined = [
        f"{before}{between.join(texts[at:end])}{after}" if at < end else "" for at, end in places
    ]
    return "[", joined, "]"


def _ints(values: Sequence[int]) -> Column:
    return "", [f"{value}" for value in values], ""  # quicker than a call of repr()


def _floats(values: Sequence[float]) -> Column:
    texts = list(map(float.__repr__, values))
    joined = f"{','.join(texts)},"
    if "e" in joined or "n" in joined:
        encode = BY_TYPE[float]
        both = zip(texts, values, strict=True)
        texts = [encode(v) if "e" in text or "n" in text else text for text, v in both]
        joined = f"{','.join(texts)},"
    if ".0," in joined:
        texts = joined.replace(".0,", ",").split(",")[:-1]
    return "", texts, ""


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
