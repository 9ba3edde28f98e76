"""Where foreign exceptions become the Engine's own (spec 3.3, 3.4, 10.7).

Nothing of the original is kept: no text, cause or context. What crosses are a connector's safe
words, and the original exception of a store or of the host's ``write`` behind ``unwrap()``.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

from fetcher_engine.concurrency import Concurrency, DeadlineExceeded
from fetcher_engine.errors import EngineError, ErrorCategory, SourceFailure, Stage
from fetcher_engine.ports import CancelSignal

T = TypeVar("T")

_CONNECT_TEXT = "failed to connect to datasource"
_INVALID_FILTER_REASONS = frozenset({"invalid_filter", "invalid_filter_value"})
"""A connector's words for what only it can judge: whether a value fits its column."""
_SAFE_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}(?: [a-z0-9_]{1,39})?", re.ASCII)
_NOTHING_ASKED: Mapping[str, Collection[str]] = MappingProxyType({})
_CONNECT_STAGES = frozenset({Stage.DNS, Stage.TCP, Stage.TLS, Stage.AUTH, Stage.SESSION})


class Phase(Enum):
    """What the connector was asked for; the value is the text of its failure."""

    CONNECT = _CONNECT_TEXT
    DISCOVER = "failed to discover datasource schema"
    QUERY = "failed to query datasource"


class Checkpoint:
    """Where an operation notices that it should end: by the host's signal or by the loop."""

    def __init__(self, concurrency: Concurrency, cancel: CancelSignal | None) -> None:
        self._concurrency = concurrency
        self._cancel = cancel

    async def __call__(self) -> None:
        """Raise ``canceled``, DeadlineExceeded or the loop's own cancellation, if there is one."""
        if self._cancel is not None and self._cancel.is_cancelled():
            raise EngineError(ErrorCategory.CANCELED, "execution canceled")
        await self._concurrency.checkpoint()


async def from_source(
    call: Callable[[], Awaitable[T]],
    *,
    phase: Phase,
    source: str,
    checkpoint: Checkpoint,
    asked: Mapping[str, Collection[str]] = _NOTHING_ASKED,
) -> T:
    """What a connector answers. An ended deadline or a cancellation wins over its own failure.

    ``asked`` are the fields that the caller named, by table: a failure names no others.
    """
    failure: Exception
    try:
        return await call()
    except Exception as error:  # noqa: BLE001 - the boundary to drivers, which raise anything
        failure = _translated(error, phase, source, asked)
    await checkpoint()
    raise failure


async def from_store(call: Callable[[], Awaitable[T]]) -> T:
    """What a connection store answers: its EngineErrors pass, all else is ``unavailable``."""
    try:
        return await call()
    except (EngineError, DeadlineExceeded):
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to a host's store
        failure = EngineError(ErrorCategory.UNAVAILABLE, "connection store unavailable", error)
    raise failure


def not_persisted(error: BaseException | None = None) -> EngineError:
    """For what the host does with the result; its exception stays for it to unwrap."""
    text = "failed to persist extraction result"
    return EngineError(ErrorCategory.UNAVAILABLE, text, error)


def timed_out() -> EngineError:
    return EngineError(ErrorCategory.TIMEOUT, "execution exceeded its deadline")


def unknown_connection() -> EngineError:
    """For operations on one connection; the same for every way of not being there."""
    return EngineError(ErrorCategory.NOT_FOUND, "connection not found")


def unknown_datasource() -> EngineError:
    """For extractions. It names no source: whether another tenant has the name stays unknown."""
    text = "extraction references an unknown datasource connection"
    return EngineError(ErrorCategory.NOT_FOUND, text)


def _translated(
    error: Exception, phase: Phase, source: str, asked: Mapping[str, Collection[str]]
) -> Exception:
    if isinstance(error, DeadlineExceeded) or _holds_only_deadlines(error):
        return DeadlineExceeded()
    if isinstance(error, EngineError) and error.category is ErrorCategory.CONNECT:
        return error
    connecting = phase is Phase.CONNECT
    if not isinstance(error, SourceFailure):
        category = ErrorCategory.CONNECT if connecting else ErrorCategory.UNAVAILABLE
        return EngineError(category, phase.value, source=source)
    if connecting or error.stage in _CONNECT_STAGES:
        category, text = ErrorCategory.CONNECT, _CONNECT_TEXT
    elif error.reason in _INVALID_FILTER_REASONS:
        category, text = ErrorCategory.VALIDATION, "extraction request has an invalid filter"
    elif error.reason == "timeout":
        category, text = ErrorCategory.TIMEOUT, phase.value
    else:
        category, text = ErrorCategory.UNAVAILABLE, phase.value
    table = error.table if error.table in asked else None
    named = table is not None and _is_asked(error.column, asked[table])
    return EngineError(
        category,
        text,
        source=source,
        stage=Stage(error.stage) if error.stage in frozenset(Stage) else None,
        reason=error.reason if _SAFE_REASON.fullmatch(str(error.reason)) else "unknown",
        table=table,
        column=error.column if named else None,
    )


def _is_asked(column: str | None, fields: Collection[str]) -> bool:
    """Whether a column is a field asked for, a part of one, or a filtered field."""
    return column is not None and any(
        field in ("*", column) or field.startswith(f"{column}.") or column.startswith(f"{field}.")
        for field in fields
    )


def _holds_only_deadlines(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup) and error.split(DeadlineExceeded)[1] is None
