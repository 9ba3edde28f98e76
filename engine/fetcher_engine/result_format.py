"""What the two forms of a result share: one document, or lines for a sink."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.row_pieces import RowPiece

Emit: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes the next bytes of a step."""


class TableOutOfOrder(Exception):
    """A connector delivered a table that was not asked for, or one after its turn."""


class ByteBudget:
    """The exact size of the document so far, over all steps, held below its limit.

    It starts with the skeleton, since every byte of it will be written.
    """

    def __init__(self, *, limit: int, skeleton: int) -> None:
        self._limit = limit
        self._used = 0
        self.spend(skeleton)

    def spend(self, count: int) -> None:
        """Raise ``limit_exceeded`` when the document would be larger than its limit."""
        self._used += count
        if self._used > self._limit:
            text = "extraction result exceeds the configured size limit"
            raise EngineError(ErrorCategory.LIMIT_EXCEEDED, text)


class StepOutput(Protocol):
    """Turns the rows of one step into its bytes of the result."""

    async def put(self, table: str, piece: RowPiece) -> None:
        """Take the next rows of ``table``.

        Raise ``limit_exceeded``, TableOutOfOrder, MalformedBatch, and what ``emit`` raises.
        """
        ...

    async def finish(self) -> None:
        """Emit what is left: no more rows come."""
        ...


class ResultFormat(Protocol):
    """One of the two forms, for the steps of one run."""

    @property
    def empty(self) -> bytes:
        """The result of a plan without steps."""
        ...

    @property
    def skeleton_bytes(self) -> int:
        """The size of the result when no table has a row."""
        ...

    def output(self, step: PlanStep, budget: ByteBudget, emit: Emit) -> StepOutput:
        """Raise ``internal`` (reason ``invalid_text``) for names that are no Unicode."""
        ...
