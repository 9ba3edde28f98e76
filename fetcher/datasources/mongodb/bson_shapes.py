"""What the documents of a collection have in common, learned from them.

A shape is a list of fields in their stored order; a field may be missing or null in some documents
and have values of several types. Documents that differ are merged into one shape for as long as
their fields stand in one order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from fetcher.datasources.mongodb.types import INT32

MAX_FIELDS: Final = 400
"""A shape of more fields, nested ones counted, is none."""

MAX_VARIANTS: Final = 4
_MAX_DEPTH: Final = 8
_MAX_BINARY_BYTES: Final = 64

STRINGS: Final = frozenset({0x02, 0x0D, 0x0E})
FIXED: Final = {0x01: 8, 0x07: 12, 0x08: 1, 0x09: 8, 0x10: 4, 0x12: 8, 0x13: 16}
NULLS: Final = frozenset({0x06, 0x0A})
DOCUMENT: Final = 0x03
ARRAY: Final = 0x04
BINARY: Final = 0x05


class NoShape(Exception):
    """The document has something that no pattern can tell: the walker reads it."""


@dataclass(slots=True)
class Variant:
    """A value's type. ``size`` is that of a binary; ``fields`` are a document's.

    ``element`` is what all elements of an array are; None while only empty ones were seen.
    """

    kind: int
    size: int = 0
    fields: "list[Field]" = field(default_factory=list)
    element: "Variant | None" = None

    @property
    def key(self) -> tuple[int, int]:
        return self.kind, self.size


@dataclass(slots=True)
class Field:
    name: bytes
    variants: list[Variant]
    """Without any, the field was only ever null."""
    after: frozenset[bytes] = frozenset()
    """The fields that stood directly before it in some document."""
    null_kinds: frozenset[int] = frozenset()
    is_optional: bool = False


Fields: TypeAlias = list[Field]


def shape_of(data: bytes) -> Fields:
    """The shape of one document that the walker has read already; raise NoShape."""
    return _document(data, 0, 0)[0]


def merged(known: Sequence[Field], other: Sequence[Field]) -> Fields:
    """One shape for the documents of both; raise NoShape where no order of fields fits both."""
    ours = {each.name: each for each in known}
    theirs = {each.name: each for each in other}
    fields = {}
    for name in {**ours, **theirs}:
        one, two = ours.get(name), theirs.get(name)
        fields[name] = _merged_field(one, two) if one and two else _optional(one or two)
    try:
        order = tuple(
            TopologicalSorter({each.name: each.after for each in fields.values()}).static_order()
        )
    except CycleError:
        order = ()
    if len(order) < len(fields):
        raise NoShape
    return [fields[name] for name in order]


def field_count(fields: Sequence[Field]) -> int:
    return sum(1 + sum(map(_inner_count, each.variants)) for each in fields)


def _inner_count(variant: Variant) -> int:
    inner = _inner_count(variant.element) if variant.element is not None else 0
    return 1 + inner + field_count(variant.fields)


def _optional(one: Field | None) -> Field:
    if one is None:
        raise NoShape
    return replace(one, is_optional=True)


def _merged_field(one: Field, other: Field) -> Field:
    variants = {variant.key: variant for variant in one.variants}
    for variant in other.variants:
        known = variants.get(variant.key)
        variants[variant.key] = _merged_variant(known, variant) if known else variant
    if len(variants) > MAX_VARIANTS:
        raise NoShape
    return Field(
        one.name,
        list(variants.values()),
        one.after | other.after,
        one.null_kinds | other.null_kinds,
        one.is_optional or other.is_optional,
    )


def _merged_variant(one: Variant, other: Variant) -> Variant:
    if one.element is None or other.element is None:
        element = one.element or other.element
    elif one.element.key == other.element.key:
        element = _merged_variant(one.element, other.element)
    else:
        raise NoShape
    return Variant(one.kind, one.size, merged(one.fields, other.fields), element)


def _document(data: bytes, at: int, depth: int) -> tuple[Fields, int]:
    if depth > _MAX_DEPTH:
        raise NoShape
    fields: Fields = []
    for kind, name, start in (elements := _Elements(data, at)):
        after = frozenset({fields[-1].name}) if fields else frozenset()
        if kind in NULLS:
            fields.append(Field(name, [], after, frozenset({kind})))
        else:
            variant, elements.at = _variant(data, kind, start, depth)
            fields.append(Field(name, [variant], after))
    if len({each.name for each in fields}) < len(fields):
        raise NoShape
    return fields, elements.end + 1


def _variant(data: bytes, kind: int, at: int, depth: int) -> tuple[Variant, int]:
    if kind in FIXED:
        return Variant(kind), at + FIXED[kind]
    if kind in STRINGS:
        return Variant(kind), at + 4 + int(INT32.unpack_from(data, at)[0])
    if kind == BINARY:
        size = int(INT32.unpack_from(data, at)[0])
        if size > _MAX_BINARY_BYTES or data[at + 4] == 2:
            raise NoShape
        return Variant(kind, size), at + 5 + size
    if kind == DOCUMENT:
        fields, end = _document(data, at, depth + 1)
        return Variant(kind, fields=fields), end
    if kind == ARRAY:
        return _array(data, at, depth + 1)
    raise NoShape


def _array(data: bytes, at: int, depth: int) -> tuple[Variant, int]:
    """All elements must be of one type, and none null."""
    element: Variant | None = None
    for kind, _, start in (elements := _Elements(data, at)):
        if kind in NULLS or kind in (ARRAY, BINARY):
            raise NoShape
        variant, elements.at = _variant(data, kind, start, depth)
        if element is not None and element.key != variant.key:
            raise NoShape
        element = variant if element is None else _merged_variant(element, variant)
    return Variant(ARRAY, element=element), elements.end + 1


class _Elements:
    """The elements of a document; ``at`` is set past each value before the next is asked for."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self.at = start + 4
        self.end = start + int(INT32.unpack_from(data, start)[0]) - 1

    def __iter__(self) -> Iterator[tuple[int, bytes, int]]:
        while self.at < self.end:
            stop = self._data.index(b"\0", self.at + 1, self.end)
            kind, name = self._data[self.at], self._data[self.at + 1 : stop]
            self.at = stop + 1
            yield kind, name, stop + 1
