"""From whatever was raised to what the caller is told: the one place that maps (spec rest-api 6).

Every body has an ``errorCode``: the stable text of what happened. It equals ``code`` wherever that
is text; where ``code`` is the Wire's number it is the only text a program can decide by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from werkzeug.exceptions import HTTPException, MethodNotAllowed

from fetcher.domain.errors import (
    HOST_REFUSED,
    DuplicateActiveJob,
    DuplicateConfigName,
    FetcherError,
    ForbiddenHost,
    ObjectNotFound,
    OperationRefused,
    PortError,
    PortUnavailable,
    QueueMissing,
    Unroutable,
)
from fetcher.domain.json_text import dumps
from fetcher.domain.remedies import remedy
from fetcher.domain.tenants import TenantsLeftAlone, TenantUnknown
from fetcher_engine import EngineError, ErrorCategory, Stage

RETRY_AFTER_SECONDS = 5
"""What a 503 suggests: the time in which the sweeps and reconnects of the process come round."""

STATUS: Mapping[str, int] = MappingProxyType(
    {
        "FET-0001": 400,
        "FET-0002": 500,
        "FET-0003": 503,
        "FET-0004": 409,
        "FET-0005": 404,
        "FET-0006": 401,
        "FET-0007": 403,
        "FET-0401": 400,
        "FET-0402": 400,
        "FET-0403": 400,
        "FET-0404": 400,
        "FET-0405": 400,
        "FET-0406": 400,
        "FET-0407": 400,
        "FET-0408": 400,
        "FET-0409": 400,
        "FET-0413": 400,
        "FET-0414": 400,
        "FET-1001": 404,
        "FET-1002": 409,
        "FET-1014": 400,
        "FET-1015": 409,
        "FET-1016": 400,
        "FET-1020": 400,
        "FET-1021": 409,
        "FET-1022": 409,
        "FET-1023": 409,
        "FET-1024": 404,
        "FET-1025": 409,
        "FET-1026": 422,
        "FET-1027": 422,
        "FET-1028": 409,
        "FET-1040": 400,
        "FET-1061": 400,
        "FET-1062": 400,
        "FET-1080": 400,
        "FET-1081": 404,
        "FET-1082": 503,
        "MISSING_TOKEN": 401,
        "INVALID_TOKEN": 401,
        "MISSING_TENANT": 401,
        "INVALID_TENANT": 401,
        "0131": 403,
        "TENANT_NOT_FOUND": 404,
        "TENANT_DB_ERROR": 500,
        "SERVICE_UNAVAILABLE": 503,
    }
)
"""Spec 6.2, configuration 11.2, and the codes of operations that they do not have (docs/errors.md).
A code that is a number is its own status; the platform's ``0131`` is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An answer that tells of a failure; with ``text`` it says that instead of its body."""

    status: int
    body: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    is_of_source: bool = False
    """Whether the caller's own data source failed: nothing that the operator could mend."""

    @property
    def content_type(self) -> str:
        return "application/json" if self.text is None else "text/plain; charset=utf-8"

    @property
    def content(self) -> bytes:
        return (dumps(self.body) if self.text is None else self.text).encode()


@dataclass(frozen=True, slots=True)
class _Category:
    status: int
    code: str
    title: str
    message: str


ENGINE_CATEGORIES: Mapping[ErrorCategory, _Category] = MappingProxyType(
    {
        ErrorCategory.VALIDATION: _Category(
            400, "FET-0401", "Invalid Data Request", "the request cannot be carried out as it is"
        ),
        ErrorCategory.NOT_FOUND: _Category(404, "FET-1001", "Entity Not Found", "not found"),
        ErrorCategory.UNAUTHORIZED: _Category(
            401, "FET-0006", "Unauthorized", "authentication is required"
        ),
        ErrorCategory.FORBIDDEN: _Category(403, "FET-0007", "Forbidden", "access is denied"),
        ErrorCategory.LIMIT_EXCEEDED: _Category(
            422, "FET-1061", "Validation Limit Exceeded", "a limit was exceeded"
        ),
        ErrorCategory.CONFLICT: _Category(
            409, "FET-0004", "Conflict", "in conflict with its state"
        ),
        ErrorCategory.UNAVAILABLE: _Category(
            503, "FET-0003", "Service Unavailable", "the data source did not serve the request"
        ),
        ErrorCategory.CONNECT: _Category(
            502, "502", "Database Connection Error", "the data source could not be reached"
        ),
        ErrorCategory.TIMEOUT: _Category(
            504, "504", "Database Timeout", "the data source did not answer in time"
        ),
        ErrorCategory.CANCELED: _Category(499, "499", "Request Canceled", "the caller went away"),
        ErrorCategory.INTERNAL: _Category(
            500, "FET-0002", "Internal Server Error", "an internal error occurred"
        ),
    }
)
"""The decisions' table; :data:`WIRE_CATEGORIES` goes before it."""

_CONNECTION_ERROR = _Category(
    500,
    "500",
    "Database Connection Error",
    "the data source could not be reached",
)
_SCHEMA_ERROR = _Category(
    500, "500", "Schema Retrieval Error", "the data source was reached, but not its schema"
)
WIRE_CATEGORIES: Mapping[str, tuple[Mapping[ErrorCategory, _Category], _Category]] = (
    MappingProxyType(
        {
            "test_connection": ({}, _CONNECTION_ERROR),
            "get_connection_schema": (
                {ErrorCategory.CONNECT: _CONNECTION_ERROR},
                _SCHEMA_ERROR,
            ),
        }
    )
)
"""Operations whose failures at the data source have statuses of their own (spec 6.5, 8.7, 8.8):
by category, and for all others."""

TOO_MANY_STREAMS: Final = "too_many_streams"
REQUESTS_LIMIT: Final = "tenant_requests_limit"
BAD_FRAMING: Final = "bad_framing"

FRAMEWORK_CODES: Mapping[int, str] = MappingProxyType(
    {
        404: "route_not_found",
        405: "method_not_allowed",
        408: "request_timeout",
        413: "request_too_large",
        431: "header_too_large",
        503: "overloaded",
    }
)

_PORT_ERRORS: tuple[tuple[type[PortError], tuple[str, str, str]], ...] = (
    (OperationRefused, ("FET-0002", "Internal Server Error", "an internal error occurred")),
    (
        QueueMissing,
        ("FET-1028", "Queue Missing", "the broker lacks a queue: `fetcher topology declare`"),
    ),
    (TenantUnknown, ("FET-1081", "Tenant Not Found", "the tenant is not known")),
    (
        TenantsLeftAlone,
        ("FET-1082", "Tenant Service Unavailable", "the Tenant Manager is left alone for a while"),
    ),
    (PortUnavailable, ("FET-0003", "Service Unavailable", "a part of the service is away")),
    (Unroutable, ("FET-0003", "Service Unavailable", "a part of the service is away")),
    (DuplicateConfigName, ("FET-1002", "Conflict", "the config name is already used")),
    (DuplicateActiveJob, ("FET-0004", "Conflict", "an active job has the same request")),
    (ObjectNotFound, ("FET-0005", "Not Found", "the object does not exist")),
)


def problem_of(error: Exception, *, operation: str | None = None, path: str = "/") -> Problem:
    """``operation`` is the route's name, ``path`` what an unknown route is told back."""
    match error:
        case FetcherError():
            return _of_refusal(error)
        case EngineError(reason=reason) if reason == HOST_REFUSED:
            return _of_refusal(ForbiddenHost())
        case EngineError():
            return _of_engine(error, operation)
        case PortError():
            return _of_port(error)
        case HTTPException():
            return _of_framework(error, path)
        case _:
            return internal_problem()


def internal_problem() -> Problem:
    """``FET-0002``: nothing of the cause is told."""
    return _coded("FET-0002", "Internal Server Error", "an internal error occurred")


def framework_problem(status: int, message: str, *, error_code: str | None = None) -> Problem:
    """Body E of spec 6.1, for what is refused before any operation has the request."""
    return Problem(
        status=status,
        body={
            "code": status,
            "title": "request_failed",
            "message": message,
            "errorCode": error_code or FRAMEWORK_CODES.get(status, f"http_{status}"),
        },
        headers=_retry_after(status, None),
    )


def _of_refusal(error: FetcherError) -> Problem:
    more: dict[str, object] = dict(error.details)
    if error.entity_type:
        more["entityType"] = error.entity_type
    if error.fields:
        more["fields"] = error.fields
    return _coded(
        error.code,
        error.title,
        error.message,
        error_code=error.error_code,
        more=more,
        retry_after_seconds=error.retry_after_seconds,
    )


def _of_engine(error: EngineError, operation: str | None) -> Problem:
    by_category, otherwise = WIRE_CATEGORIES.get(operation or "", (ENGINE_CATEGORIES, None))
    category = error.category
    if otherwise is not None and error.stage in _CONNECT_STAGES:
        category = ErrorCategory.CONNECT
    told = by_category.get(category) or otherwise or _INTERNAL
    facts = {"stage": error.stage, "reason": error.reason, "source": error.source}
    advice = f": {remedy(error.reason, stage=error.stage)}" if told is _CONNECTION_ERROR else ""
    problem = _coded(
        told.code,
        told.title,
        told.message + advice,
        status=told.status,
        error_code=f"engine_{error.category}" if told.code.isdigit() else None,
        more={name: str(fact) for name, fact in facts.items() if fact},
    )
    return replace(problem, is_of_source=told.code.isdigit())


_CONNECT_STAGES = (Stage.DNS, Stage.TCP, Stage.TLS, Stage.AUTH, Stage.SESSION)
_INTERNAL = ENGINE_CATEGORIES[ErrorCategory.INTERNAL]


def _of_port(error: PortError) -> Problem:
    for kind, (code, title, message) in _PORT_ERRORS:
        if isinstance(error, kind):
            return _coded(code, title, message)
    return internal_problem()


def _of_framework(error: HTTPException, path: str) -> Problem:
    status = error.code or 500
    if status >= 500:
        return internal_problem()
    message = f"Cannot {path}" if status == 404 else error.name
    problem = framework_problem(status, message)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allow = ", ".join(sorted(error.valid_methods))
        return Problem(status=status, body=problem.body, headers={"Allow": allow})
    return problem


def _coded(
    code: str,
    title: str,
    message: str,
    *,
    status: int | None = None,
    error_code: str | None = None,
    more: Mapping[str, object] | None = None,
    retry_after_seconds: float | None = None,
) -> Problem:
    number = int(code) if code.isdigit() and code not in STATUS else None
    actual = status or number or STATUS.get(code, 500)
    return Problem(
        status=actual,
        body={
            "code": code if number is None else number,
            "title": title,
            "message": message,
            "errorCode": error_code or (code if number is None else f"http_{code}"),
            **(more or {}),
        },
        headers=_retry_after(actual, retry_after_seconds),
    )


def _retry_after(status: int, seconds: float | None) -> dict[str, str]:
    if status not in (429, 503):
        return {}
    return {"Retry-After": str(round(seconds or RETRY_AFTER_SECONDS))}
