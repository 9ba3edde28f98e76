"""Raw BSON documents to compact JSON objects in UTF-8: what MongoDB rows are made with.

Most documents of a collection look alike: they are read by the pattern of their shape, many at a
time and column by column. Whatever does not fit is read by the walker, and the shape learns from
it. Both give the same bytes (property tests); measured in decision 008.
"""

import re
from collections.abc import Sequence
from typing import Final

from fetcher.datasources.mongodb.bson_columns import Converters, NotAsLearned
from fetcher.datasources.mongodb.bson_patterns import DocumentPattern, PatternCompiler
from fetcher.datasources.mongodb.bson_shapes import (
    MAX_FIELDS,
    Fields,
    NoShape,
    field_count,
    merged,
    shape_of,
)
from fetcher.datasources.mongodb.bson_walk import BsonWalker, MalformedBson
from fetcher.datasources.mongodb.scalars import INT32
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text

_MAX_LESSONS: Final = 48
"""A collection whose documents still differ after so many has no shape."""

_LARGE_BYTES: Final = 64 * 1024
"""Larger documents are mostly long texts, where the walker is as quick."""

_MAX_EXPANSION: Final = 6
"""A control character's JSON form is six times its size."""


class CellTooLarge(Exception):
    """A top-level value is larger than cells may be; its argument is the field."""


class BsonWriter:
    """Writes the documents of one table; it learns their shape as they come."""

    def __init__(self, options: JobOptions, *, max_cell_bytes: int) -> None:
        self._walker = BsonWalker(options)
        self._compiler = PatternCompiler(Converters(self._walker))
        self._max_cell_bytes = max_cell_bytes
        self._fields: Fields | None = None
        self._pattern: DocumentPattern | None = None
        self._search: re.Pattern[bytes] | None = None
        self._lessons = 0

    def rows(self, data: bytes, starts: Sequence[int]) -> list[str]:
        """The documents that lie one behind the other in ``data``, each as a JSON object.

        ``starts`` are their offsets (:func:`document_starts`). Raise MalformedBson, InvalidText,
        CellTooLarge; the last two name the field.
        """
        rows: list[str] = []
        bounds = [*starts, len(data)]
        misfits = 0
        sizes = map(int.__sub__, bounds[1:], starts)
        by_shape = max(sizes, default=0) * _MAX_EXPANSION <= self._max_cell_bytes
        while len(rows) < len(starts):
            at = bounds[len(rows)]
            if by_shape and misfits <= 4 + len(rows) // 4:
                fitting = self._by_shape(data, at)
                # a text that is not what it looked like would be met again at every turn
                by_shape = fitting is not None
                rows += fitting or ()
                if len(rows) == len(starts):
                    break
                misfits += 1
            document = data[bounds[len(rows)] : bounds[len(rows) + 1]]
            rows.append(self._walked(document))
            self._learn(document)
        return rows

    def _by_shape(self, data: bytes, at: int) -> list[str] | None:
        """The documents from here on up to the first that does not fit; None where a text of theirs
        is not as it looked."""
        if self._search is None or self._pattern is None:
            return []
        found = self._search.findall(data, at)
        if found[-1][-1]:
            # the last group holds where the shape did not fit
            found.pop()
        try:
            return self._pattern.rows(found)
        except NotAsLearned:
            return None

    def _walked(self, document: bytes) -> str:
        found = self._walker.members(document)
        if len(document) * _MAX_EXPANSION > self._max_cell_bytes:
            for name, text in found.items():
                if len(text) > self._max_cell_bytes or (
                    len(text) * 4 > self._max_cell_bytes
                    and len(text.encode()) > self._max_cell_bytes
                ):
                    raise CellTooLarge(name)
        return f"{{{','.join([f'{encode_text(name)}:{found[name]}' for name in sorted(found)])}}}"

    def _learn(self, document: bytes) -> None:
        if self._lessons >= _MAX_LESSONS or len(document) > _LARGE_BYTES:
            return
        self._lessons += 1
        try:
            fields = shape_of(document)
            if self._fields is not None:
                fields = merged(self._fields, fields)
            if field_count(fields) > MAX_FIELDS:
                return
            pattern = self._compiler.compile(fields)
        except NoShape:
            return
        if not pattern.group_count:
            return
        self._fields, self._pattern = fields, pattern
        self._search = re.compile(pattern.pattern + b"|(.).*", re.DOTALL)


def document_starts(data: bytes) -> list[int]:
    """Where each of the documents in ``data`` begins; raise MalformedBson."""
    starts = []
    at, length_at = 0, INT32.unpack_from
    while at < len(data) - 4:
        starts.append(at)
        size = length_at(data, at)[0]
        if size < 5:
            raise MalformedBson
        at += size
    if at != len(data):
        raise MalformedBson
    return starts
