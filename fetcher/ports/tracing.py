"""Spans: what a stage of a request or a job was part of, and how long it took."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import Token
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from fetcher.domain.trace_context import TraceContext, current_trace, enter_trace, leave_trace

SpanValue: TypeAlias = str | int | bool
"""Ids, counts, codes, names of settings and routes; never a row's value, an address or a secret."""

SPAN_CANCELLED: Final = "fetcher.cancelled"
"""Noted on a span whose work was given up, which is no failure of it."""


class SpanKind(StrEnum):
    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    @property
    def context(self) -> TraceContext | None:
        """What those are told who go on for it; None where there is no trace."""
        ...

    def rename(self, name: str) -> None: ...

    def note(self, name: str, value: SpanValue) -> None: ...

    def fail(self, code: str) -> None:
        """Mark it as failed; ``code`` is a word of a closed set."""

    def ended_by(self, ending: BaseException) -> None:
        """Mark it by what ended it: as cancelled, else as failed under its code, never its text.

        For who keeps a span open beyond the call; one that leaves the context is told by itself.
        """


class Tracer(Protocol):
    """Called on every request and job: it neither waits nor raises."""

    def span(
        self,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: TraceContext | None = None,
        attributes: Mapping[str, SpanValue] | None = None,
    ) -> AbstractContextManager[Span]:
        """Below ``parent``; without it below the task's current span, else a trace of its own.

        It is the current one of its task until it is left. An exception that leaves it is noted by
        its type or code, never by its text.
        """
        ...


class _Untold:
    """A span that nobody hears of. It only hands on what it was given."""

    __slots__ = ("_token", "context")

    def __init__(self, context: TraceContext | None) -> None:
        self.context = context
        self._token: Token[TraceContext | None] | None = None

    def __enter__(self) -> "_Untold":
        if self.context is not None:
            self._token = enter_trace(self.context)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            leave_trace(self._token)

    def rename(self, name: str) -> None:
        """Nobody hears of it."""

    def note(self, name: str, value: SpanValue) -> None:
        """Nobody hears of it."""

    def fail(self, code: str) -> None:
        """Nobody hears of it."""

    def ended_by(self, ending: BaseException) -> None:
        """Nobody hears of it."""


class Untraced:
    """Implements :class:`Tracer` where traces are off: a caller's context is handed on."""

    def __init__(self) -> None:
        self._nothing = _Untold(None)

    def span(
        self,
        name: str,  # noqa: ARG002 - the port's signature
        *,
        kind: SpanKind = SpanKind.INTERNAL,  # noqa: ARG002 - the port's signature
        parent: TraceContext | None = None,
        attributes: Mapping[str, SpanValue] | None = None,  # noqa: ARG002 - the port's signature
    ) -> AbstractContextManager[Span]:
        context = parent or current_trace()
        return self._nothing if context is None else _Untold(context)


UNTRACED: Final = Untraced()
