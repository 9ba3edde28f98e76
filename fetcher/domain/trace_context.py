"""The W3C trace context: which trace, and which span of it, somebody works for.

What comes from outside is judged here before it goes anywhere; nobody's baggage is taken.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)
_STATE = re.compile(r"[\x20-\x7e]{1,512}", re.ASCII)
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Made by :func:`trace_context` or by a tracer: both fields are well-formed."""

    parent: str
    """As in ``traceparent``, version 00."""
    state: str = ""
    """As in ``tracestate``, empty where there is none."""

    @property
    def trace_id(self) -> str:
        return self.parent[3:35]

    @property
    def span_id(self) -> str:
        return self.parent[36:52]

    @property
    def is_sampled(self) -> bool:
        return bool(int(self.parent[53:], 16) & _SAMPLED)

    def headers(self) -> dict[str, str]:
        """Names in lower case, as in HTTP."""
        return {TRACEPARENT: self.parent, **({TRACESTATE: self.state} if self.state else {})}

    def capitalised(self) -> dict[str, str]:
        """As the reference writes them into messages (spec configuration 10.3)."""
        return {name.capitalize(): value for name, value in self.headers().items()}


def trace_context(parent: object, state: object = None) -> TraceContext | None:
    """None unless ``parent`` is a ``traceparent`` that names a trace and a span.

    A later version than 00 is read as that one, with nothing behind it (W3C, 4.3). A ``tracestate``
    that is over 512 characters or not printable is dropped alone.
    """
    match = _PARENT.fullmatch(parent) if isinstance(parent, str) else None
    if match is None:
        return None
    version, trace_id, span_id, flags = match.groups()
    if version == "ff" or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    kept = isinstance(state, str) and _STATE.fullmatch(state) is not None
    return TraceContext(f"00-{trace_id}-{span_id}-{flags}", str(state) if kept else "")


def trace_context_in(headers: Mapping[str, object]) -> TraceContext | None:
    """Of a message: names in any case, values that are text; the first usable pair counts."""
    parents = [value for name, value in headers.items() if name.lower() == TRACEPARENT]
    states = [value for name, value in headers.items() if name.lower() == TRACESTATE]
    state = next((each for each in states if isinstance(each, str)), None)
    return next((found for each in parents if (found := trace_context(each, state))), None)


_current: ContextVar[TraceContext | None] = ContextVar("fetcher_trace", default=None)


def current_trace() -> TraceContext | None:
    """What this task works for; tasks inherit it from whoever starts them."""
    return _current.get()


def enter_trace(context: TraceContext) -> Token[TraceContext | None]:
    """For tracers; to be left with :func:`leave_trace` in the same task."""
    return _current.set(context)


def leave_trace(token: Token[TraceContext | None]) -> None:
    with suppress(ValueError):  # left in another context: nothing of it is to be restored there
        _current.reset(token)
