"""The result as lines: ``{"config":"crm","table":"orders","row":{…}}`` (spec 11.2)."""

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.json_values import encode_text
from fetcher_engine.result_format import ByteBudget, Emit, StepOutput, TableOutOfOrder
from fetcher_engine.row_pieces import RowPiece

_BATCH_ROWS = 256
_BATCH_BYTES = 1024 * 1024
"""A write holds so many lines, or fewer once they are this large (spec 10.5)."""


class LineFormat:
    """Newline-delimited JSON, a line a row: what a sink gets."""

    empty = b""
    skeleton_bytes = 0

    def output(self, step: PlanStep, budget: ByteBudget, emit: Emit) -> StepOutput:
        return LineOutput(step, budget, emit)


class LineOutput:
    """One step's lines, in the order in which its rows come."""

    def __init__(self, step: PlanStep, budget: ByteBudget, emit: Emit) -> None:
        self._budget = budget
        self._emit = emit
        self._prefixes = _line_prefixes(step)
        self._lines: list[bytes] = []
        self._line_bytes = 0

    async def put(self, table: str, piece: RowPiece) -> None:
        prefix = self._prefixes.get(table)
        if prefix is None:
            raise TableOutOfOrder
        rows = piece.apart()
        self._budget.spend(sum(map(len, rows)) + len(rows) * (len(prefix) + len(b"}\n")))
        for row in rows:
            line = b"%b%b}\n" % (prefix, row)
            self._lines.append(line)
            self._line_bytes += len(line)
            if len(self._lines) == _BATCH_ROWS or self._line_bytes >= _BATCH_BYTES:
                await self._flush()

    async def finish(self) -> None:
        await self._flush()

    async def _flush(self) -> None:
        if self._lines:
            batch = b"".join(self._lines)
            self._lines.clear()
            self._line_bytes = 0
            await self._emit(batch)


def _line_prefixes(step: PlanStep) -> dict[str, bytes]:
    config = encode_text(step.config_name)
    try:
        return {
            table: f'{{"config":{config},"table":{encode_text(table)},"row":'.encode()
            for table in step.tables
        }
    except UnicodeEncodeError:
        text = "failed to serialize extraction result"
        failure = EngineError(ErrorCategory.INTERNAL, text, reason="invalid_text")
    raise failure
