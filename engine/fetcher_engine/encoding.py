"""Rows as compact JSON, in pieces (spec 11.3 and 19.6, as amended by the design, section 5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.json_columns import encode_rows
from fetcher_engine.json_values import encode_text, encode_value
from fetcher_engine.ports import RowEncoding
from fetcher_engine.row_pieces import JoinedRows, RowPiece, SeparateRows

_MAX_PIECE_BYTES = 256 * 1024
"""Where a piece of encoded rows is cut: a few milliseconds of work between two checkpoints."""

_FIRST_SLICE_ROWS = 32
"""Rows that are encoded together while nothing is known about their size."""

_MAX_SLICE_ROWS = 512
"""Rows that are encoded together at most, however small they are."""

_MAX_REFUSALS = 5
"""After so many in a row, one slice in 32 is still offered to the host's encoding."""


class RowEncoder:
    """Encodes the rows of one table: by the host's encoding where there is one, or its own way.

    Rows are taken in slices that make about one piece, by the size of the rows before them.
    """

    def __init__(self, *, source: str, table: str, encoding: RowEncoding | None = None) -> None:
        self.table = table
        self._source = source
        self._encoding = encoding
        self._slice_rows = _FIRST_SLICE_ROWS
        self._columns: Sequence[str] = ()
        self._refusals = 0
        self._not_offered = 0

    def encode(self, rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[bytes, int]]:
        """The same pieces as of :meth:`pieces`, joined by commas, each with its count of rows."""
        for piece in self.pieces(rows):
            yield piece.joined(), piece.row_count

    def pieces(self, rows: Sequence[Mapping[str, object]]) -> Iterator[RowPiece]:
        """All rows as JSON objects, in pieces of about a quarter of a mebibyte.

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
                if len(data) > 2 * _MAX_PIECE_BYTES and len(part) > 1:
                    continue  # larger rows than before: fewer of them make a piece
                yield JoinedRows(data, len(part))
            start += len(part)

    def _learn(self, size: int, rows: int) -> None:
        fitting = _MAX_PIECE_BYTES * rows // size
        self._slice_rows = max(1, min(fitting, _MAX_SLICE_ROWS))

    def _by_host(self, rows: Sequence[Mapping[str, object]]) -> bytes | None:
        if self._encoding is None:
            return None
        if self._not_offered > 0:
            self._not_offered -= 1
            return None
        try:
            data = self._encoding.encode(rows)
        except Exception:  # noqa: BLE001 - the port's contract: the Engine's own way says what is wrong
            data = None
        if isinstance(data, bytes) and data:
            self._refusals = 0
            return data
        # rows that are refused are likely to be followed by others
        self._refusals = min(self._refusals + 1, _MAX_REFUSALS)
        self._not_offered = 2**self._refusals - 1
        return None

    def _by_engine(self, rows: Sequence[Mapping[str, object]]) -> Iterator[RowPiece]:
        try:
            texts, self._columns = encode_rows(rows, self._columns)
            encoded = None if texts is None else list(map(str.encode, texts))
        except Exception:  # noqa: BLE001 - row by row, the one that cannot be written is found
            encoded = None
        if encoded is not None:
            size = sum(map(len, encoded))
            self._learn(size, len(rows))
            if size <= _MAX_PIECE_BYTES:
                yield _piece(encoded, size)
                return
        yield from _cut(map(self._row, rows) if encoded is None else encoded)

    def _row(self, row: Mapping[str, object]) -> bytes:
        try:
            members = [f"{encode_text(name)}:{encode_value(row[name])}" for name in sorted(row)]
            return f"{{{','.join(members)}}}".encode()
        except Exception as error:  # noqa: BLE001 - a row may hold objects of any driver, which raise anything
            column, reason = _first_bad_column(row) or (None, _reason(error))
        raise EngineError(
            ErrorCategory.INTERNAL,
            "failed to serialize extraction result",
            source=self._source,
            reason=reason,
            table=self.table,
            column=column,
        )


def _piece(encoded: Sequence[bytes], size: int) -> RowPiece:
    commas = len(encoded) - 1
    return SeparateRows(encoded, size + commas)


def _cut(encoded: Iterable[bytes]) -> Iterator[RowPiece]:
    piece: list[bytes] = []
    size = 0
    for row in encoded:
        piece.append(row)
        size += len(row)
        if size >= _MAX_PIECE_BYTES:
            yield _piece(piece, size)
            piece, size = [], 0
    if piece:
        yield _piece(piece, size)


def _first_bad_column(row: Mapping[str, object]) -> tuple[str, str] | None:
    """Its name and what is wrong with it; None where the row itself or a name is broken."""
    try:
        values = [(name, row[name]) for name in sorted(row)]
    except Exception:  # noqa: BLE001 - a row may hold objects of any driver, which raise anything
        return None
    for name, value in values:
        try:
            encode_value(value).encode()
        except Exception as error:  # noqa: BLE001 - a row may hold objects of any driver, which raise anything
            return name, _reason(error)
    return None


def _reason(error: Exception) -> str:
    return "invalid_text" if isinstance(error, UnicodeEncodeError) else "not_encodable"
