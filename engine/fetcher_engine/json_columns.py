"""Rows as compact JSON, column by column: loops over values run in C, not in Python.

Each function gives exactly what :func:`encode_value` makes of each value. Only values whose exact
type is known are written by column; anything else is written on its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise, repeat
from operator import itemgetter, or_
from typing import Any

from fetcher_engine.json_scalars import BY_COLUMN, Parts, sparse_floats
from fetcher_engine.json_values import (
    BY_TYPE,
    MAX_DEPTH,
    NotEncodable,
    encode_other,
    encode_text,
    encode_value,
)

_MAX_ITEMS = 64 * 1024
"""Items of arrays that are laid side by side; cyclic arrays would multiply with each level."""

_MAX_INLINE = 16
"""Arrays of as many items at most become columns of what they stand in."""

_MAX_SPARSENESS = 4
"""Columns are laid out while at most this many places are there for each value."""

_FEW = 4
"""With fewer objects of one shape than this, laying out columns costs more than it brings."""

_SAMPLE = 16
"""By so many values of a column with gaps its usual kind is guessed; others are then one by one."""

_NOTHING = type(None)


class _Absent:
    """What stands where a row has no such column. A list that is written has nothing for it."""

    __slots__ = ()  # the garbage collector need not look at it, nor at what holds nothing else
    __repr__ = "".strip  # a function in C, unlike any that could be written here


_ABSENT = _Absent()

_PLAIN: dict[type, Callable[[Any], str]] = {
    str: encode_text,
    int: int.__repr__,
    bool: BY_TYPE[bool],
}
"""Kinds whose values may be told from others and written in one go."""


def encode_rows(
    rows: Sequence[Mapping[str, object]], known: Sequence[str] = ()
) -> tuple[Sequence[str] | None, Sequence[str]]:
    """One JSON object a row, columns in byte order, or None for rows that share too few columns.

    ``known`` are columns that rows of changing shape may have, in byte order; beside the objects
    comes what is known after these rows. Raise anything where a row cannot be written; writing the
    rows one by one tells which.
    """
    objects: Sequence[dict[str, Any]] = [
        row if type(row) is dict else {name: row[name] for name in row} for row in rows
    ]
    sizes = list(map(len, objects))
    if sizes.count(sizes[0]) == len(sizes):
        try:
            parts = _objects(_in_order(objects[0]), objects, depth=0)
            return _joined(parts, len(objects)), known
        except KeyError:
            pass  # as many columns, but not the same
    most = _MAX_SPARSENESS * sum(sizes) // len(sizes)
    if 0 < len(known) <= most:
        texts = _encode_sparse(known, objects)
        if texts is not None:
            return texts, known
        names = _in_order(set(known).union(*objects))
    else:
        names = []
    if not 0 < len(names) <= most:
        names = _in_order(set().union(*objects))
    return (_encode_sparse(names, objects), names) if len(names) <= most else (None, known)


def _encode_sparse(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> Sequence[str] | None:
    """None where a row has another column than these."""
    nothing: dict[str, Any] = dict.fromkeys(names, _ABSENT)
    cells = list(chain.from_iterable(map(dict.values, map(or_, repeat(nothing), rows))))
    if len(cells) > len(names) * len(rows):
        return None
    parts: Parts = []
    for at, name in enumerate(names):
        parts += _sparse_members(f",{encode_text(name)}:", cells[at :: len(names)])
    first = parts[0]
    if isinstance(first, str):  # each row has the first column
        return _joined([f"{{{first[1:]}", *parts[1:], "}"], len(rows))
    return [f"{{{text[1:]}}}" for text in _joined(parts, len(rows))]


def _in_order(names: Iterable[str]) -> list[str]:
    ordered = sorted(names)
    if not set(map(type, ordered)) <= {str}:
        raise NotEncodable
    return ordered


def _objects(names: Sequence[str], objects: Sequence[dict[str, Any]], *, depth: int) -> Parts:
    parts: Parts = []
    comma = "{"
    for name in names:
        parts.append(f"{comma}{encode_text(name)}:")
        parts += encode_column(list(map(itemgetter(name), objects)), depth)
        comma = ","
    parts.append("}" if names else "{}")
    return parts


def _joined(parts: Parts, count: int) -> Sequence[str]:
    """One text for each of ``count`` values; shared texts that stand together are one."""
    columns: list[Iterable[str]] = []
    shared = ""
    for part in parts:
        if isinstance(part, str):
            shared += part
        else:
            columns += (repeat(shared), part) if shared else (part,)
            shared = ""
    columns.append(repeat(shared, count))
    return list(map("".join, zip(*columns)))  # noqa: B905 - repeat() has no end


def _sparse_members(lead: str, values: list[Any]) -> Parts:
    """What each row has of a column, ``lead`` before it."""
    kinds = set(map(type, values[:_SAMPLE]))
    if _Absent not in kinds:
        kinds = set(map(type, values))
        if _Absent not in kinds:
            return [lead, *_encode_kinds(kinds, values, depth=0)]
    kinds -= {_Absent, _NOTHING}
    if kinds == {float} and (texts := sparse_floats(values, _ABSENT)) is not None:
        return [[text and lead + text for text in texts]]
    null = f"{lead}null"
    # one expression a kind: what a call for each value would cost is as much as all else here
    if kinds == {int}:
        members = [
            f"{lead}{v}"
            if type(v) is int
            else ""
            if v is _ABSENT
            else null
            if v is None
            else lead + encode_value(v)
            for v in values
        ]
    elif kinds == {str}:
        members = [
            lead + encode_text(v)
            if type(v) is str
            else ""
            if v is _ABSENT
            else null
            if v is None
            else lead + encode_value(v)
            for v in values
        ]
    elif kinds <= {bool}:
        true, false = f"{lead}true", f"{lead}false"
        members = [
            ""
            if v is _ABSENT
            else null
            if v is None
            else true
            if v is True
            else false
            if v is False
            else lead + encode_value(v)
            for v in values
        ]
    else:
        present = [v for v in values if v is not _ABSENT]
        member = _each(encode_column(present, depth=0), len(present)).__next__
        members = ["" if v is _ABSENT else lead + member() for v in values]
    return [members]


def _each(parts: Parts, count: int) -> Iterator[str]:
    """The texts one by one, joined where they have several parts."""
    [first, *more] = parts
    return iter(_joined(parts, count) if more or isinstance(first, str) else first)


def encode_column(values: Sequence[Any], depth: int) -> Parts:
    """The values, each as :func:`encode_value` writes it at ``depth``."""
    return _encode_kinds(set(map(type, values)), values, depth)


def _encode_kinds(kinds: set[type], values: Sequence[Any], depth: int) -> Parts:
    """``kinds`` are the types of the values."""
    if len(kinds) == 1:
        return _encode_kind(kinds.pop(), values, depth)
    if len(kinds) == 2 and _NOTHING in kinds:
        kinds.remove(_NOTHING)
        return [_encode_nullable(kinds.pop(), values, depth)]
    return [_one_by_one(values, depth)]


def _encode_kind(kind: type, values: Sequence[Any], depth: int) -> Parts:
    if kind in BY_TYPE:
        by_column = BY_COLUMN.get(kind)
        parts = None if by_column is None else by_column(values)
        return [list(map(BY_TYPE[kind], values))] if parts is None else parts
    if depth <= MAX_DEPTH and len(values) >= _FEW:
        if kind is dict:
            return _encode_dicts(values, depth)
        if kind is list or kind is tuple:
            return _encode_arrays(values, depth)
    return [[encode_other(value, depth) for value in values]]


def _encode_nullable(kind: type, values: Sequence[Any], depth: int) -> Sequence[str]:
    if (encode := _PLAIN.get(kind)) is not None:
        return ["null" if value is None else encode(value) for value in values]
    present = [value for value in values if value is not None]
    text = _each(_encode_kind(kind, present, depth), len(present)).__next__
    return ["null" if v is None else text() for v in values]


def _one_by_one(values: Iterable[Any], depth: int) -> Sequence[str]:
    get = BY_TYPE.get
    return [encode_other(v, depth) if (f := get(type(v))) is None else f(v) for v in values]


def _encode_dicts(values: Sequence[dict[Any, Any]], depth: int) -> Parts:
    shapes = list(map(tuple, values))
    if shapes.count(shapes[0]) == len(shapes):
        return _encode_shape(shapes[0], values, depth)
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for shape, value in zip(shapes, values, strict=True):
        groups.setdefault(shape, []).append(value)
    if len(groups) * _FEW > len(values):
        return [[encode_other(value, depth) for value in values]]
    texts = {
        shape: iter(_joined(_encode_shape(shape, group, depth), len(group)))
        for shape, group in groups.items()
    }
    return [[next(texts[shape]) for shape in shapes]]


def _encode_shape(names: tuple[Any, ...], values: Sequence[dict[Any, Any]], depth: int) -> Parts:
    if set(map(type, names)) <= {str}:
        return _objects(names, values, depth=depth + 1)
    return [[encode_other(value, depth) for value in values]]


def _encode_arrays(values: Sequence[Sequence[Any]], depth: int) -> Parts:
    sizes = list(map(len, values))
    count = sum(sizes)
    if not 0 < count <= _MAX_ITEMS:
        return [[encode_other(value, depth) for value in values]]
    item = encode_column(list(chain.from_iterable(values)), depth + 1)
    size = sizes[0]
    if size <= _MAX_INLINE and sizes.count(size) == len(sizes):
        parts: Parts = ["["]
        for at in range(size):
            parts += [part if isinstance(part, str) else part[at::size] for part in item]
            parts.append(",")
        parts[-1] = "]"
        return parts
    texts = _joined(item, count)
    places = pairwise(accumulate(sizes, initial=0))
    return ["[", [",".join(texts[at:end]) for at, end in places], "]"]
