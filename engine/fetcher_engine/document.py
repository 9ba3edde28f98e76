"""The result document around its rows: ``{"cfg":{"t":[row,row],"u":[]}}`` (design section 5)."""

from collections.abc import Sequence

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.json_values import encode_text
from fetcher_engine.result_format import ByteBudget, Emit, StepOutput, TableOutOfOrder
from fetcher_engine.row_pieces import RowPiece

_LARGE_PIECE_BYTES = 64 * 1024
"""A piece of this size goes on as it is; smaller ones are joined first."""


class DocumentFormat:
    """One JSON document of all steps: the result in memory and as a stream."""

    empty = b"{}"

    def __init__(self, steps: Sequence[PlanStep]) -> None:
        """Raise ``internal`` (reason ``invalid_text``) for names that are no Unicode."""
        self._last = len(steps) - 1
        self.skeleton_bytes = skeleton_bytes(steps)

    def output(self, step: PlanStep, budget: ByteBudget, emit: Emit) -> StepOutput:
        frame = StepFrame(step, is_last=step.ordinal == self._last)
        return DocumentOutput(frame, budget, emit)


class DocumentOutput:
    """One step's part of the document, emitted as it comes."""

    def __init__(self, frame: "StepFrame", budget: ByteBudget, emit: Emit) -> None:
        self._frame = frame
        self._budget = budget
        self._joiner = PieceJoiner(emit)

    async def put(self, table: str, piece: RowPiece) -> None:
        lead = self._frame.before_rows(table)
        # the first bytes of a table are part of the skeleton, which is counted already
        self._budget.spend(piece.size_bytes + (len(lead) if lead == b"," else 0))
        await self._joiner.put(lead)
        await self._joiner.put(piece.joined())

    async def finish(self) -> None:
        await self._joiner.put(self._frame.finish())
        await self._joiner.flush()


class StepFrame:
    """All bytes of one step that are not rows, given out as the rows come."""

    def __init__(self, step: PlanStep, *, is_last: bool) -> None:
        opening = "," if step.ordinal else "{"
        try:
            self._pending = f"{opening}{encode_text(step.config_name)}:{{".encode()
            self._openings = {t: f"{encode_text(t)}:[".encode() for t in step.tables}
        except UnicodeEncodeError:
            named = False
        else:
            named = True
        if not named:
            text = "failed to serialize extraction result"
            raise EngineError(ErrorCategory.INTERNAL, text, reason="invalid_text")
        self._waiting = list(reversed(step.tables))
        self._table: str | None = None
        self._is_last = is_last

    def before_rows(self, table: str) -> bytes:
        """What stands between what was given out and the next rows of ``table``.

        Tables that are passed over get their empty list. Raise TableOutOfOrder for a table that is
        not in the plan or whose turn is over.
        """
        if table == self._table:
            return b","
        if table not in self._waiting:
            raise TableOutOfOrder
        parts = [self._pending, *self._close_table()]
        while (skipped := self._waiting.pop()) != table:
            parts += [self._openings[skipped], b"],"]
        self._pending = b""
        self._table = table
        return b"".join([*parts, self._openings[table]])

    def finish(self) -> bytes:
        """The rest of the step; after the last step also the end of the document."""
        parts = [self._pending, *self._close_table()]
        parts.append(b",".join(self._openings[t] + b"]" for t in reversed(self._waiting)))
        return b"".join([*parts, b"}}" if self._is_last else b"}"])

    def _close_table(self) -> list[bytes]:
        if self._table is None:
            return []
        return [b"],"] if self._waiting else [b"]"]


def frames_of(steps: Sequence[PlanStep]) -> list[StepFrame]:
    return [StepFrame(step, is_last=step is steps[-1]) for step in steps]


def skeleton_bytes(steps: Sequence[PlanStep]) -> int:
    """The size of the document when no table has a row."""
    return sum(len(frame.finish()) for frame in frames_of(steps)) or len(DocumentFormat.empty)


class PieceJoiner:
    """Joins small pieces so that what follows is called for some tens of kilobytes at least.

    Large pieces are passed on uncopied. Order is kept.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._small: list[bytes] = []
        self._small_bytes = 0

    async def put(self, piece: bytes) -> None:
        if len(piece) >= _LARGE_PIECE_BYTES:
            await self.flush()
            await self._emit(piece)
            return
        self._small.append(piece)
        self._small_bytes += len(piece)
        if self._small_bytes >= _LARGE_PIECE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        if self._small:
            joined = b"".join(self._small)
            self._small.clear()
            self._small_bytes = 0
            await self._emit(joined)
