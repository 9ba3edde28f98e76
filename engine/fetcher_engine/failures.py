"""Where foreign exceptions become the Engine's own (spec 3.3, 3.4, 10.7).

Nothing of the original is kept: no text, cause or context. What crosses are a connector's safe
words, and behind ``unwrap()`` the original exception of a store or of the host's ``write``, and the
cause that a connector gave to its own ``connect``.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
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
_UNAVAILABLE_REASONS = frozenset(
    {"driver_missing", "starting_up", "too_many_connections", "too_many_sessions"}
)
"""Nothing is wrong with the connection: it may well work another time, or elsewhere."""
_SAFE_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}(?: [a-z0-9_]{1,39})?", re.ASCII)
NOTHING_ASKED: Mapping[str, Collection[str]] = MappingProxyType({})
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
        """Raise ``canceled``, DeadlineExceeded or the loop's own cancellation, if there is one.

        A signal that fails ends the operation too, as ``internal``.
        """
        if self._cancel is not None and _is_cancelled(self._cancel):
            raise EngineError(ErrorCategory.CANCELED, "execution canceled")
        await self._concurrency.checkpoint()


def _is_cancelled(signal: CancelSignal) -> bool:
    with suppress(Exception):
        return bool(signal.is_cancelled())
    raise unexpected()


async def from_source(
    call: Callable[[], Awaitable[T]],
    *,
    phase: Phase,
    source: str,
    checkpoint: Checkpoint,
    asked: Mapping[str, Collection[str]] = NOTHING_ASKED,
) -> T:
    """What a connector answers. An ended deadline or a cancellation wins over its own failure.

    ``asked`` are the fields that the caller named, by table: a failure names no others.
    """
    failure: BaseException
    try:
        return await call()
    except Exception as error:  # noqa: BLE001 - the boundary to drivers, which raise anything
        failure = _translated(error, phase, source, asked)
    except BaseExceptionGroup as group:
        failure = loops_own(group) or _opaque(phase, source)
    if isinstance(failure, Exception):
        await checkpoint()
    raise failure


async def from_store(call: Callable[[], Awaitable[T]]) -> T:
    """What a connection store answers: its EngineErrors pass, all else is ``unavailable``."""
    return await from_host(call, store_unavailable, passes_engine_errors=True)


async def from_host(
    call: Callable[[], Awaitable[T]],
    failure_of: Callable[[BaseException], EngineError],
    *,
    checkpoint: Checkpoint | None = None,
    passes_engine_errors: bool = False,
) -> T:
    """What a host's port answers, its own exceptions replaced by what ``failure_of`` makes of them.

    The loop's cancellation goes through, also out of a group; with a ``checkpoint`` an ended
    deadline or cancellation wins over the port's failure.
    """
    ending: BaseException
    try:
        return await call()
    except DeadlineExceeded:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to a host's port
        passes = passes_engine_errors and isinstance(error, EngineError)
        ending = error if passes else failure_of(error)
    except BaseExceptionGroup as group:
        ending = loops_own(group) or failure_of(group)
    if checkpoint is not None and isinstance(ending, Exception):
        await checkpoint()
    raise ending


async def if_it_can(call: Callable[[], Awaitable[T]]) -> T | None:
    """What a host's port answers, None where it fails: for what an operation can do without.

    The loop's cancellation goes through, also out of a group.
    """
    try:
        return await call()
    except Exception:  # noqa: BLE001 - whatever it raises, the operation goes on
        return None
    except BaseExceptionGroup as group:
        ending = loops_own(group)
    if ending is None:
        return None
    raise ending


def store_unavailable(error: BaseException | None = None) -> EngineError:
    """For a connection store that failed; its exception stays for the host to unwrap."""
    return EngineError(ErrorCategory.UNAVAILABLE, "connection store unavailable", error)


def not_persisted(error: BaseException | None = None) -> EngineError:
    """For what the host does with the result; its exception stays for it to unwrap."""
    text = "failed to persist extraction result"
    return EngineError(ErrorCategory.UNAVAILABLE, text, error)


def loops_own(ending: BaseException) -> BaseException | None:
    """What of an ending is the loop's cancellation or an exit, without what led to it.

    A connector's nursery may put its own exceptions beside a cancellation; the host's scope would
    take the cancellation out of such a group and let the rest go on. None where only such are left.
    """
    leaves = list(_leaves(ending))
    for leaf in leaves:
        forget_origin(leaf)
    return BaseExceptionGroup("", leaves) if len(leaves) > 1 else next(iter(leaves), None)


def forget_origin(error: BaseException) -> None:
    """Let go of what an exception carries beside itself: cause, context and notes."""
    error.__cause__ = error.__context__ = None
    if hasattr(error, "__notes__"):
        del error.__notes__


def _leaves(ending: BaseException) -> Iterator[BaseException]:
    if isinstance(ending, BaseExceptionGroup):
        for part in ending.exceptions:
            yield from _leaves(part)
    elif not isinstance(ending, Exception):
        yield ending


def unexpected(source: str | None = None) -> EngineError:
    """For what no port should do and no rule foresees."""
    return EngineError(ErrorCategory.INTERNAL, "unexpected engine failure", source=source)


def timed_out() -> EngineError:
    return EngineError(ErrorCategory.TIMEOUT, "execution exceeded its deadline")


def unknown_connection() -> EngineError:
    """For operations on one connection; the same for every way of not being there."""
    return EngineError(ErrorCategory.NOT_FOUND, "connection not found")


def unknown_type(datasource_type: str, source: str | None = None) -> EngineError:
    """For a type without a factory. It may be anything somebody stored: shown, at no length."""
    shown = "".join(filter(str.isprintable, datasource_type))[:64]
    text = f"no connector registered for datasource type {shown}"
    return EngineError(ErrorCategory.NOT_FOUND, text, source=source)


def unknown_datasource(config_name: str) -> EngineError:
    """For extractions: the caller's own word, whether nobody has the name or another tenant."""
    text = "extraction references an unknown datasource connection"
    return EngineError(ErrorCategory.NOT_FOUND, text, source=config_name)


def asked_names(
    table: object, column: object, asked: Mapping[str, Collection[str]]
) -> tuple[str | None, str | None]:
    """The names of a failure as far as the caller named them itself."""
    if not isinstance(table, str) or table not in asked:
        return None, None
    if not isinstance(column, str) or not _is_asked(column, asked[table]):
        return table, None
    return table, column


def _translated(
    error: Exception, phase: Phase, source: str, asked: Mapping[str, Collection[str]]
) -> Exception:
    # a connector's own subclass may lack the attributes, or raise when it is asked for them
    with suppress(Exception):
        if isinstance(error, DeadlineExceeded) or _holds_only_deadlines(error):
            return DeadlineExceeded()
        if isinstance(error, SourceFailure):
            category, text = _judged(error, phase)
            return _worded(EngineError(category, text, source=source), error, asked)
        if isinstance(error, EngineError) and error.category is ErrorCategory.CONNECT:
            cause = error.unwrap()
            return _worded(
                EngineError(ErrorCategory.CONNECT, _CONNECT_TEXT, cause, source=source),
                error,
                asked,
            )
    return _opaque(phase, source)


def _opaque(phase: Phase, source: str) -> EngineError:
    connecting = phase is Phase.CONNECT
    category = ErrorCategory.CONNECT if connecting else ErrorCategory.UNAVAILABLE
    return EngineError(category, phase.value, source=source)


def _judged(error: SourceFailure, phase: Phase) -> tuple[ErrorCategory, str]:
    is_connecting = phase is Phase.CONNECT or error.stage in _CONNECT_STAGES
    text = _CONNECT_TEXT if is_connecting else phase.value
    if error.reason == "timeout":
        return ErrorCategory.TIMEOUT, text
    if is_connecting and error.reason not in _UNAVAILABLE_REASONS:
        return ErrorCategory.CONNECT, text
    if not is_connecting and error.reason in _INVALID_FILTER_REASONS:
        return ErrorCategory.VALIDATION, "extraction request has an invalid filter"
    return ErrorCategory.UNAVAILABLE, text


def _worded(
    failure: EngineError,
    error: SourceFailure | EngineError,
    asked: Mapping[str, Collection[str]],
) -> EngineError:
    """The failure with those of a connector's words that are safe."""
    stage, reason = error.stage, error.reason
    failure.stage = next((each for each in Stage if each == stage), None)
    if reason is not None:
        is_safe = type(reason) is str and _SAFE_REASON.fullmatch(reason)
        failure.reason = reason if is_safe else "unknown"
    failure.table, failure.column = asked_names(error.table, error.column, asked)
    return failure


def _is_asked(column: str, fields: Collection[str]) -> bool:
    """Whether a column is a field asked for, a part of one, or a filtered field."""
    return any(
        field in ("*", column) or field.startswith(f"{column}.") or column.startswith(f"{field}.")
        for field in fields
    )


def _holds_only_deadlines(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup) and error.split(DeadlineExceeded)[1] is None
