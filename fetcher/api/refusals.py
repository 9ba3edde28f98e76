"""Which failures an operation may answer with, by their ``errorCode``: for the API document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fetcher.api.problems import (
    BAD_FRAMING,
    FRAMEWORK_CODES,
    REQUESTS_LIMIT,
    STATUS,
    TOO_MANY_STREAMS,
)
from fetcher_engine import ErrorCategory

SOURCE_FAILED: Final = tuple(f"engine_{category}" for category in ErrorCategory)
"""An operation that opens a data source tells its failures by category, all as 500 (spec 6.5)."""

_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "FET-0001": "the body cannot be read, or a member is invalid",
        "FET-0002": "an internal error",
        "FET-0003": "a part of the service is away",
        "FET-0004": "somebody else changed it at the same time",
        "FET-0005": "the stored object is gone",
        "FET-0006": "no token, or none that is accepted",
        "FET-0007": "the caller may not do this",
        "FET-0401": "what is asked for, or a filter, is invalid; the message names the member",
        "FET-0402": "something required is missing",
        "FET-0403": "a header is missing or invalid",
        "FET-0404": "the id is no UUID",
        "FET-0405": "a query parameter is invalid",
        "FET-0406": "`limit` is too large",
        "FET-0407": "`sortOrder` is neither `asc` nor `desc`",
        "FET-0408": "a date is invalid",
        "FET-0409": "`endDate` is before `startDate`",
        "FET-0413": "the stored SSL mode is not one of the type's",
        "FET-0414": "the host is not allowed",
        "FET-1001": "nothing has this id",
        "FET-1002": "the config name is already used",
        "FET-1014": "a connection belongs to no product",
        "FET-1015": "the connection belongs to a product already",
        "FET-1016": "a connection belongs to another product",
        "FET-1020": "a data source is not configured",
        "FET-1021": "a job is under way",
        "FET-1022": "the job has ended",
        "FET-1023": "the job has not ended",
        "FET-1024": "the job has no result",
        "FET-1025": "the key was used with another request",
        "FET-1026": "the result is too large for a preview",
        "FET-1027": "the result cannot be opened",
        "FET-1028": "the broker lacks a queue that the operator declares",
        "FET-1040": "a connection could not be tested",
        "FET-1061": "more is asked for than the limits allow",
        "FET-1062": "none of the data sources is configured",
        "FET-1080": "there is no tenant to act for",
        "FET-1081": "the tenant is not known any more",
        "FET-1082": "the Tenant Manager is left alone for a while",
        "MISSING_TOKEN": "no token",
        "INVALID_TOKEN": "the token cannot be read",
        "MISSING_TENANT": "the token names no tenant",
        "INVALID_TENANT": "the token names what can be no tenant",
        "0131": "the tenant is suspended, or may not use this service",
        "TENANT_NOT_FOUND": "the tenant is not known",
        "TENANT_DB_ERROR": "the tenant could not be opened",
        "SERVICE_UNAVAILABLE": "the tenant cannot be served for now",
        REQUESTS_LIMIT: "the tenant has too many requests under way",
        "too_many_pending_jobs": "too many jobs wait already",
        "rate_limit_exceeded": "the connection was tested too often",
        TOO_MANY_STREAMS: "as many streams are open as may be",
        BAD_FRAMING: "the head says two lengths of the body",
        "request_timeout": "the request did not arrive in time",
        "request_too_large": "the body is too large",
        "header_too_large": "request line and headers are too large",
        "overloaded": "the bodies of other requests take all the room there is",
        **dict.fromkeys(SOURCE_FAILED, "the data source could not be reached or read"),
    }
)
_NUMERIC: Final[Mapping[str, int]] = MappingProxyType(
    {
        "too_many_pending_jobs": 429,
        "rate_limit_exceeded": 429,
        REQUESTS_LIMIT: 429,
        TOO_MANY_STREAMS: 503,
        BAD_FRAMING: 400,
        **{code: status for status, code in FRAMEWORK_CODES.items()},
        **dict.fromkeys(SOURCE_FAILED, 500),
    }
)
"""Whose ``code`` is the status, as a number (spec 6.1, C and E)."""

OF_EVERY_OPERATION: Final = (
    BAD_FRAMING,
    "request_timeout",
    "request_too_large",
    "header_too_large",
    "FET-0002",
    "FET-0003",
    "overloaded",
)
OF_AUTHORIZATION: Final = ("FET-0006", "FET-0007")
OF_TENANTS: Final = (
    "MISSING_TOKEN",
    "INVALID_TOKEN",
    "MISSING_TENANT",
    "INVALID_TENANT",
    "0131",
    "TENANT_NOT_FOUND",
    "FET-1081",
    REQUESTS_LIMIT,
    "TENANT_DB_ERROR",
    "SERVICE_UNAVAILABLE",
    "FET-1082",
)
BODY: Final = ("FET-0001",)
ID: Final = ("FET-0404", "FET-1001")
PAGE: Final = ("FET-0405", "FET-0406", "FET-0407", "FET-0408", "FET-0409")
OPENED_SOURCE: Final = ("FET-0413", "FET-0414")
ASKED_JOB: Final = (*OPENED_SOURCE, "FET-0401", "FET-1014", "FET-1016", "FET-1020")
NEW_JOB: Final = (*ASKED_JOB, "FET-1040", "too_many_pending_jobs")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failure, its status, what stands in ``code``, and what it means."""

    error_code: str
    status: int
    code: str | int
    meaning: str

    @classmethod
    def of(cls, error_code: str) -> "Refusal":
        """Raise KeyError for a code that is in no table."""
        status = _NUMERIC.get(error_code) or STATUS[error_code]
        code = status if error_code in _NUMERIC else error_code
        return cls(error_code, status, code, _MEANINGS[error_code])


def by_status(error_codes: Iterable[str]) -> dict[int, Sequence[Refusal]]:
    """Each code once, by status in ascending order."""
    found: dict[int, list[Refusal]] = {}
    for error_code in dict.fromkeys(error_codes):
        refusal = Refusal.of(error_code)
        found.setdefault(refusal.status, []).append(refusal)
    return dict(sorted(found.items()))
