"""A shape as a regular expression over raw documents, and its groups as rows (decision 008).

A match reads a document as BSON's grammar does: each type byte, name and size is literal, so what
matches is read as the walker reads it. The only thing a pattern cannot know, whether a string ends
at its first NUL, is checked afterwards against the length before it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fetcher.datasources.mongodb.bson_columns import (
    Column,
    Converter,
    Converters,
    NotAsLearned,
    binaries,
    booleans,
    dates,
    doubles,
    int32s,
    object_ids,
    strings,
)
from fetcher.datasources.mongodb.bson_rows import joined
from fetcher.datasources.mongodb.bson_shapes import (
    ARRAY,
    BINARY,
    DOCUMENT,
    FIXED,
    STRINGS,
    Field,
    Fields,
    NoShape,
    Variant,
)
from fetcher.datasources.mongodb.types import INT32
from fetcher_engine import encode_text

Groups: TypeAlias = Sequence[Column]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the pattern, and how its groups become a column of texts.

    ``marker`` is the group that is empty exactly where the piece has not matched.
    """

    pattern: bytes
    groups: int
    marker: int
    texts: Callable[[Groups], list[str]]


@dataclass(frozen=True, slots=True)
class Member:
    """One field, and whether some documents lack it."""

    name: str
    part: Part
    is_optional: bool

    @property
    def label(self) -> str:
        """Its name in JSON, with the colon."""
        return f"{encode_text(self.name)}:"


class DocumentPattern:
    """Reads documents of one shape."""

    def __init__(self, members: Sequence[Member], *, in_byte_order: bool) -> None:
        """Raise NoShape where all fields are optional: nothing would hold the commas."""
        self._members = members
        self.group_count = sum(member.part.groups for member in members)
        self.pattern = b".{4}%b\\0" % b"".join(member.part.pattern for member in members)
        starts, at = [], 0
        for member in members:
            starts.append(slice(at, at + member.part.groups))
            at += member.part.groups
        self._starts = starts
        numbers = list(range(len(members)))
        if in_byte_order:
            # not by labels: a quote or an escape in them stands elsewhere than the name's end
            numbers.sort(key=lambda number: members[number].name)
        self._order = numbers
        self._labels = self._ordered_labels()

    def rows(self, found: Sequence[tuple[bytes, ...]]) -> list[str]:
        """The documents whose groups these are, as JSON objects; raise NotAsLearned."""
        return self.texts(list(zip(*found, strict=True)), len(found))

    def texts(self, groups: Groups, count: int) -> list[str]:
        """As :meth:`rows`, of ``count`` documents by column."""
        if not self._members or not count:
            return ["{}"] * count
        columns = []
        for number in self._order:
            member = self._members[number]
            own = groups[self._starts[number]]
            texts = member.part.texts(own)
            if member.is_optional:
                texts = self._with_label(number, texts)
            columns.append(texts)
        return joined(self._labels, columns, "}")

    def _ordered_labels(self) -> list[str]:
        """What stands before each column, "{" before the first. Fields before the first that all
        documents have bring a comma along behind, others before them."""
        self._before: set[int] = set()
        labels, has_anchor = [], False
        for number in self._order:
            member = self._members[number]
            if member.is_optional:
                labels.append("")
                if not has_anchor:
                    self._before.add(number)
            else:
                labels.append(f"{',' if has_anchor else ''}{member.label}")
                has_anchor = True
        if not labels:
            return labels
        if not has_anchor:
            raise NoShape
        return [f"{{{labels[0]}", *labels[1:]]

    def _with_label(self, number: int, texts: list[str]) -> list[str]:
        label = self._members[number].label
        if number in self._before:
            return [text and f"{label}{text}," for text in texts]
        return [text and f",{label}{text}" for text in texts]


class PatternCompiler:
    """Compiles shapes, for one request's options."""

    def __init__(self, converters: Converters) -> None:
        self._by_kind: dict[int, Converter] = {
            0x01: doubles,
            0x07: object_ids,
            0x08: booleans,
            0x09: dates,
            0x10: int32s,
            0x12: converters.int64s,
            0x13: converters.decimals,
        }

    def compile(self, fields: Fields) -> DocumentPattern:
        """Raise NoShape for what cannot be one pattern."""
        return self._document(fields, in_byte_order=True)

    def _document(self, fields: Fields, *, in_byte_order: bool) -> DocumentPattern:
        members = [
            Member(each.name.decode(), self._field(each), each.is_optional) for each in fields
        ]
        return DocumentPattern(members, in_byte_order=in_byte_order)

    def _field(self, one: Field) -> Part:
        """Its types as alternatives. One that is null has all groups empty but the marker."""
        name = re.escape(one.name) + rb"\0"
        parts = [self._variant(variant) for variant in one.variants]
        patterns = [
            re.escape(bytes([variant.kind])) + name + part.pattern
            for variant, part in zip(one.variants, parts, strict=True)
        ]
        if len(parts) == 1 and not one.null_kinds and not one.is_optional:
            return Part(patterns[0], parts[0].groups, parts[0].marker, parts[0].texts)
        nulls = b"".join(map(re.escape, map(bytes, zip(sorted(one.null_kinds)))))
        if nulls:
            patterns.append(b"([%b])" % nulls + name)
        pattern = b"(?:%b)%b" % (b"|".join(patterns), b"?" if one.is_optional else b"")
        return Part(
            pattern,
            sum(part.groups for part in parts) + bool(nulls),
            0,
            _alternatives(parts, has_null=bool(nulls)),
        )

    def _variant(self, variant: Variant) -> Part:
        kind = variant.kind
        if kind in FIXED:
            convert = self._by_kind[kind]
            size = FIXED[kind]
            pattern = b"(.{%d})" % size if size > 1 else rb"([\0\1])"
            return Part(pattern, 1, 0, lambda groups: convert(groups[0]))
        if kind in STRINGS:
            return Part(rb"(.{4})([^\0]*+\0)", 2, 0, lambda groups: strings(*groups))
        if kind == BINARY:
            return self._binary(variant.size)
        if kind == DOCUMENT:
            inner = self._document(variant.fields, in_byte_order=False)
            # the length is captured: it tells that the document is there, whatever is in it
            return Part(
                b"(.{4})" + inner.pattern.removeprefix(b".{4}"),
                inner.group_count + 1,
                0,
                lambda groups: inner.texts(groups[1:], len(groups[0])),
            )
        if kind == ARRAY:
            return self._array(variant.element)
        raise NoShape

    def _binary(self, size: int) -> Part:
        head = re.escape(INT32.pack(size)) + rb"[^\x02]"
        if size == 0:
            return Part(head.replace(rb"[^\x02]", rb"([^\x02])"), 1, 0, _empty_binaries)
        return Part(head + b"(.{%d})" % size, 1, 0, lambda groups: binaries(groups[0]))

    def _array(self, element: Variant | None) -> Part:
        if element is None:
            return Part(rb"(\x05\0{3})\0", 1, 0, lambda groups: ["[]"] * len(groups[0]))
        part = self._variant(element)
        head = re.escape(bytes([element.kind]))
        elements = re.compile(head + rb"([0-9]+)\0" + part.pattern, re.DOTALL)
        uncaptured = _UNESCAPED_GROUP.sub(rb"\1(?:", part.pattern)
        pattern = b"(.{4})((?:%b)*)" % (head + rb"[0-9]+\0" + uncaptured) + rb"\0"
        return Part(pattern, 2, 0, lambda groups: _arrays(elements, part, groups[1]))


_UNESCAPED_GROUP: Final = re.compile(rb"((?<!\\)(?:\\\\)*)\((?!\?)")


def _empty_binaries(groups: Groups) -> list[str]:
    return ['""'] * len(groups[0])


def _arrays(elements: re.Pattern[bytes], part: Part, column: Column) -> list[str]:
    """Equal arrays are converted once: most are short lists out of few words.

    The elements of all are found together; an array begins where one is numbered 0.
    """
    distinct = [each for each in dict.fromkeys(column) if each]
    if not all(each.startswith(b"0\0", 1) for each in distinct):
        # a driver may number as it likes
        raise NotAsLearned
    texts_of = {b"": "[]"}
    if distinct:
        # what split gives is flat: the nothing between elements, then the groups of each
        flat = elements.split(b"".join(distinct))
        indices, *groups = [flat[at :: part.groups + 2] for at in range(1, part.groups + 2)]
        texts = part.texts(groups)
        starts = [number for number, index in enumerate(indices) if index == b"0"]
        if len(starts) != len(distinct):
            raise NotAsLearned
        for raw, start, end in zip(distinct, starts, [*starts[1:], len(texts)], strict=True):
            texts_of[raw] = f"[{','.join(texts[start:end])}]"
    return list(map(texts_of.__getitem__, column))


def _alternatives(parts: Sequence[Part], *, has_null: bool) -> Callable[[Groups], list[str]]:
    """The text of whichever alternative has matched; none where the field is missing."""

    def texts(groups: Groups) -> list[str]:
        result = [""] * len(groups[0])
        at = 0
        for part in parts:
            own = groups[at : at + part.groups]
            at += part.groups
            there = [number for number, mark in enumerate(own[part.marker]) if mark]
            if len(there) == len(result):
                return part.texts(own)
            if there:
                chosen = [[column[number] for number in there] for column in own]
                for number, text in zip(there, part.texts(chosen), strict=True):
                    result[number] = text
        if has_null:
            for number, mark in enumerate(groups[at]):
                if mark:
                    result[number] = "null"
        return result

    return texts
