"""What fails in an extraction, in eleven categories with fixed texts (spec engine, section 3)."""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fetcher_engine.schema import ValidationFailure


class ErrorCategory(StrEnum):
    """The stable values; a host maps each to its transport's status."""

    VALIDATION = "validation"
    NOT_FOUND = "not_found"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    LIMIT_EXCEEDED = "limit_exceeded"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    CONNECT = "connect"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    INTERNAL = "internal"


class Stage(StrEnum):
    """How far a connector came before it failed."""

    DNS = "dns"
    TCP = "tcp"
    TLS = "tls"
    AUTH = "auth"
    SESSION = "session"
    SCHEMA = "schema"
    QUERY = "query"
    ROWS = "rows"


class SourceFailure(Exception):
    """What a connector raises: where it failed and why, from closed sets of safe words.

    ``reason`` is one of the connector documentation's words (``refused``, ``auth``, ``timeout``,
    ``database_missing`` …); ``table`` and ``column`` are names the caller itself asked for. A
    driver's text, host, user or row value never stands in any of them, and the Engine sees to it: a
    reason is one or two words of lower-case letters, digits and underscores, of 40 characters each,
    else it leaves as ``unknown``; a name that was not asked for does not leave at all.

    The reason decides the category of what the Engine raises, else the stage: ``timeout`` becomes
    ``timeout`` at every stage; the stages until the session stands become ``connect``, but
    ``driver_missing``, ``starting_up``, ``too_many_connections`` and ``too_many_sessions``
    ``unavailable``. After them ``invalid_filter`` and ``invalid_filter_value`` become
    ``validation``, all others ``unavailable``.
    """

    def __init__(
        self, stage: Stage, reason: str, *, table: str | None = None, column: str | None = None
    ) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.reason = reason
        self.table = table
        self.column = column


class EngineError(Exception):
    """The only error that leaves the Engine (spec 3.2): a category and a fixed, safe text.

    Hosts decide by ``category``, never by text. The other attributes are safe words and names that
    a host may show: ``source`` is the config name, ``stage``, ``reason``, ``table`` and ``column``
    come from a connector's :class:`SourceFailure`, ``failures`` from a schema report. ``cause`` is
    kept for a host that wants to recognise its own exception and is reachable only by
    :meth:`unwrap`; it never shows in a text, a traceback or a pickle.
    """

    def __init__(
        self,
        category: ErrorCategory,
        message: str,
        cause: BaseException | None = None,
        *,
        source: str | None = None,
        stage: Stage | None = None,
        reason: str | None = None,
        table: str | None = None,
        column: str | None = None,
        failures: "tuple[ValidationFailure, ...]" = (),
    ) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.source = source
        self.stage = stage
        self.reason = reason
        self.table = table
        self.column = column
        self.failures = failures
        self._cause = cause

    def __str__(self) -> str:
        return f"engine: [{self.category or ErrorCategory.INTERNAL}] {self.message}"

    def __repr__(self) -> str:
        return f"EngineError({str(self.category)!r}, {self.message!r})"

    def __reduce__(self) -> tuple[object, ...]:
        state = {name: value for name, value in vars(self).items() if name != "_cause"}
        return (EngineError, (self.category, self.message), state)

    def __copy__(self) -> "EngineError":
        """The same for another task to raise, its cause included."""
        duplicate = EngineError(self.category, self.message)
        vars(duplicate).update(vars(self))
        return duplicate

    def unwrap(self) -> BaseException | None:
        """The original exception, where the Engine kept it; for the same process only."""
        return self._cause

    def to_public_dict(self) -> dict[str, str]:
        """The projection for transports (spec 3.2)."""
        return {"category": str(self.category), "message": self.message}


def is_valid_category(category: str) -> bool:
    """Whether the text is one of the eleven."""
    return category in frozenset(ErrorCategory)
