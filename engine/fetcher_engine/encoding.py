"""Rows as compact JSON, in pieces (spec 11.3 and 19.6, as amended by the design, section 5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.json_columns import encode_rows
from fetcher_engine.json_values import NotEncodable, encode_text, encode_value
from fetcher_engine.ports import RowEncoding

__all__ = ["NotEncodable", "RowEncoder", "encode_text", "encode_value"]

_MAX_PIECE_CHARS = 256 * 1024
"""Where a piece of encoded rows is cut: a few milliseconds of work between two checkpoints."""

_FIRST_SLICE_ROWS = 32
"""Rows that are encoded together while nothing is known about their size."""

_MAX_SLICE_ROWS = 256
"""Rows that are encoded together at most, however small they are."""


class RowEncoder:
    """Encodes the rows of one table: by the host's encoding where there is one, or its own way.

    Rows are taken in slices that make about one piece, by the size of the rows before them.
    """

    def __init__(self, *, source: str, table: str, encoding: RowEncoding | None = None) -> None:
        self.table = table
        self._source = source
        self._encoding = encoding
        self._slice_rows = _FIRST_SLICE_ROWS

    def encode(self, rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[bytes, int]]:
        """Pieces of comma-joined objects, each with its count of rows.

        Raise ``internal`` naming table and column when a value has no JSON form (reason
        ``not_encodable``) or a text is no valid Unicode (``invalid_text``).
        """
        start = 0
        while start < len(rows):
            part = rows[start : start + self._slice_rows]
            data = self._by_host(part)
            if data is None:
                yield from self._by_engine(part)
            else:
                self._learn(len(data), len(part))
                if len(data) > 2 * _MAX_PIECE_CHARS and len(part) > 1:
                    continue  # larger rows than before: fewer of them make a piece
                yield data, len(part)
            start += len(part)

    def _learn(self, size: int, rows: int) -> None:
        fitting = _MAX_PIECE_CHARS * rows // size
        self._slice_rows = max(1, min(fitting, _MAX_SLICE_ROWS))

    def _by_host(self, rows: Sequence[Mapping[str, object]]) -> bytes | None:
        if self._encoding is None:
            return None
        try:
            data = self._encoding.encode(rows)
        except Exception:  # noqa: BLE001 - the port's contract: the Engine's own way says what is wrong
            return None
        return data if isinstance(data, bytes) and data else None

    def _by_engine(self, rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[bytes, int]]:
        texts: list[str] = []
        start = chars = size = 0
        for index, text in enumerate(self._texts(rows), start=1):
            texts.append(text)
            chars += len(text)
            if chars >= _MAX_PIECE_CHARS:
                yield self._piece(texts, rows[start:index])
                size += chars
                texts, start, chars = [], index, 0
        if texts:
            yield self._piece(texts, rows[start:])
        self._learn(size + chars, len(rows))

    def _texts(self, rows: Sequence[Mapping[str, object]]) -> Iterable[str]:
        try:
            texts = encode_rows(rows)
        except Exception:  # noqa: BLE001 - see _row, which tells the row that cannot be written
            texts = None
        return map(self._row, rows) if texts is None else texts

    def _row(self, row: Mapping[str, object]) -> str:
        try:
            members = [f"{encode_text(name)}:{encode_value(row[name])}" for name in sorted(row)]
        except Exception:  # noqa: BLE001 - a row may hold objects of any driver, which raise anything
            failure = self._failure(row, "not_encodable")
        else:
            return f"{{{','.join(members)}}}"
        raise failure

    def _piece(self, texts: list[str], rows: Sequence[Mapping[str, object]]) -> tuple[bytes, int]:
        try:
            return ",".join(texts).encode(), len(texts)
        except UnicodeEncodeError:
            bad = next(row for row, text in zip(rows, texts, strict=True) if not _is_utf8(text))
            failure = self._failure(bad, "invalid_text")
        raise failure

    def _failure(self, row: Mapping[str, object], reason: str) -> EngineError:
        return EngineError(
            ErrorCategory.INTERNAL,
            "failed to serialize extraction result",
            source=self._source,
            reason=reason,
            table=self.table,
            column=_first_bad_column(row),
        )


def _first_bad_column(row: Mapping[str, object]) -> str | None:
    try:
        return next((name for name in sorted(row) if not _is_encodable(row[name])), None)
    except Exception:  # noqa: BLE001 - the row itself is broken: there is no column to name
        return None


def _is_encodable(value: object) -> bool:
    try:
        return _is_utf8(encode_value(value))
    except Exception:  # noqa: BLE001 - see RowEncoder._row
        return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
