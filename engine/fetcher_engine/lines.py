"""The result as lines: ``{"config":"crm","table":"orders","row":{…}}`` (spec 11.2)."""

import re

from fetcher_engine.encoding import encode_text
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.result_format import (
    ByteBudget,
    Emit,
    MalformedBatch,
    StepOutput,
    TableOutOfOrder,
)

_BATCH_ROWS = 256
_BATCH_BYTES = 1024 * 1024
"""A write holds so many lines, or fewer once they are this large (spec 10.5)."""

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}]', re.DOTALL)
"""Strings, which may hold braces, and the braces outside of them."""


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

    async def put(self, table: str, data: bytes, row_count: int) -> None:
        prefix = self._prefixes.get(table)
        if prefix is None:
            raise TableOutOfOrder
        rows = split_objects(data, row_count)
        self._budget.spend(sum(map(len, rows)) + row_count * (len(prefix) + len(b"}\n")))
        for row in rows:
            line = b"%b%b}\n" % (prefix, row)
            self._lines.append(line)
            self._line_bytes += len(line)
            if len(self._lines) == _BATCH_ROWS or self._line_bytes >= _BATCH_BYTES:
                await self.finish()

    async def finish(self) -> None:
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


def split_objects(data: bytes, count: int) -> list[bytes]:
    """The objects of comma-joined compact JSON; raise MalformedBatch when they are not ``count``.

    Values are not parsed. Where ``},{`` occurs as often as there are boundaries, each is one;
    else one of them lies within a string or an array, and the braces are counted.
    """
    if count == 1:
        return [data]
    if data.count(b"},{") == count - 1:
        inner = data[1:-1].split(b"},{")
        return [b"{%b}" % each for each in inner]
    objects = []
    depth = start = 0
    for token in _TOKENS.finditer(data):
        if token[0] == b"{":
            depth += 1
        elif token[0] == b"}":
            depth -= 1
            if not depth:
                objects.append(data[start : token.end()])
                start = token.end() + 1
    if len(objects) != count:
        raise MalformedBatch
    return objects
