"""What fails in an extraction, in eleven categories with fixed texts (spec engine, section 3)."""

from enum import StrEnum


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
    driver's text, host, user or row value never stands in any of them.
    """

    def __init__(
        self, stage: Stage, reason: str, *, table: str | None = None, column: str | None = None
    ) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.reason = reason
        self.table = table
        self.column = column
