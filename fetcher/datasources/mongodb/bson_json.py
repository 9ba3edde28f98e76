"""Raw BSON documents to compact JSON objects in UTF-8: what MongoDB rows are made with.

Most documents of a collection look alike: they are read by the pattern of their shape, many at a
time and column by column. What does not fit is read by the walker, and the shape learns from it;
documents that have no shape are decoded. All give the same bytes (property tests); measured in
decision 008.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from fetcher.datasources.mongodb.bson_columns import Converters, NotAsLearned
from fetcher.datasources.mongodb.bson_decoded import BsonDecoder
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
from fetcher.datasources.mongodb.types import INT32
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text

_MAX_LESSONS: Final = 48
"""A collection whose documents still differ after so many has no shape."""

_MAX_SHAPELESS: Final = 3
"""So many chunks in a row without a shape: no more is looked for."""

_LARGE_BYTES: Final = 64 * 1024
"""Larger documents are mostly long texts: no shape is learned from them."""

_DECODED_BYTES: Final = 1024 * 1024
"""Decoding holds the interpreter for some milliseconds a mebibyte; the walker lets others run."""

_MAX_EXPANSION: Final = 6
"""A control character's JSON form is six times its size."""


class CellTooLarge(Exception):
    """A top-level value is larger than cells may be; its argument is the field."""


class BsonWriter:
    """Writes the documents of one table; it learns their shape as they come."""

    def __init__(
        self, options: JobOptions, *, max_cell_bytes: int, texts: Texts | None = None
    ) -> None:
        self._walker = BsonWalker(options, texts)
        self._decoder = BsonDecoder(self._walker)
        self._compiler = PatternCompiler(Converters(self._walker))
        self._max_cell_bytes = max_cell_bytes
        self._fields: Fields | None = None
        self._pattern: DocumentPattern | None = None
        self._search: re.Pattern[bytes] | None = None
        self._lessons = 0
        self._shapeless = 0

    def rows(self, data: bytes, starts: Sequence[int]) -> list[str]:
        """The documents that lie one behind the other in ``data``, as JSON objects: texts of one
        object each, or of several with commas between them.

        ``starts`` are their offsets (:func:`document_starts`). Raise MalformedBson, InvalidText,
        CellTooLarge; the last two name the field.
        """
        bounds = [*starts, len(data)]
        largest = max(map(int.__sub__, bounds[1:], starts), default=0)
        if largest * _MAX_EXPANSION > self._max_cell_bytes:
            # cells must be measured, one by one
            return [self._walked(data[at:end]) for at, end in pairwise(bounds)]
        rows = self._rows_of_shape(data, bounds)
        if len(rows) < len(starts):
            rows += self._decoded(data, bounds[len(rows) :])
        return rows

    def _rows_of_shape(self, data: bytes, bounds: Sequence[int]) -> list[str]:
        """All documents, or those before more and more have no common shape."""
        rows: list[str] = []
        if self._shapeless >= _MAX_SHAPELESS:
            return rows
        misfits = 0
        while misfits <= 4 + len(rows) // 4:
            fitting = self._by_shape(data, bounds[len(rows)])
            if fitting is None:
                # a text that is not what it looked like would be met again at every turn
                return rows
            rows += fitting
            if len(rows) == len(bounds) - 1:
                self._shapeless = 0
                return rows
            misfits += 1
            document = data[bounds[len(rows)] : bounds[len(rows) + 1]]
            rows.append(self._walked(document))
            if len(rows) == len(bounds) - 1:
                return rows
            self._learn(document)
        self._shapeless += 1
        return rows

    def _decoded(self, data: bytes, bounds: Sequence[int]) -> list[str]:
        """Pieces with one row or more."""
        if bounds[-1] - bounds[0] <= _DECODED_BYTES:
            whole = self._decoder.rows(data[bounds[0] :])
            if whole is not None:
                return [whole]
        documents = [data[at:end] for at, end in pairwise(bounds)]
        return [
            (self._decoder.rows(document) if len(document) <= _DECODED_BYTES else None)
            or self._walked(document)
            for document in documents
        ]

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
        # at once: each step between would copy a large text
        parts = ["{"]
        for name in sorted(found):
            parts += (encode_text(name), ":", found[name], ",")
        parts[max(1, len(parts) - 1) :] = "}"
        return "".join(parts)

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
