"""The one place where pymongo's exceptions become ours."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

import trio
from bson.errors import BSONError, InvalidDocument
from pymongo.errors import (
    BulkWriteError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from fetcher.bridge import CancelledInside, run_asyncio
from fetcher.domain.errors import OperationRefused, PortError, PortUnavailable

P = ParamSpec("P")
T = TypeVar("T")

# UnicodeError: a text with lone surrogates, or a host name that no resolver can encode.
# RecursionError: a value that is nested deeper than BSON's encoder goes.
DRIVER_FAILURES: Final = (
    PyMongoError,
    BSONError,
    CancelledInside,
    OSError,
    UnicodeError,
    RecursionError,
    trio.TooSlowError,
)

_TOO_LARGE: Final = (10334, 17420)
"""BSONObjectTooLarge, as of an insert and of an update that makes a document grow."""

_PASSING: Final = frozenset(
    {
        *(6, 7, 50, 89, 91),  # HostUnreachable, HostNotFound, MaxTimeMSExpired, NetworkTimeout,
        # ShutdownInProgress: spec rest-api 6.3. Then what a change of the primary shows as, and
        # a majority that did not answer in time:
        *(64, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436),
    }
)


_SIGNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CERTIFICATE_VERIFY_FAILED": "tls: a server's certificate was not accepted",
        "SSL": "tls: TLS handshake failed (is it a plain port?)",
        "connection closed": "session: a server closed the connection (is it a TLS port?)",
        "Connect call failed": "tcp: refused: nothing listens there",
    }
)
"""Within what the driver tells of a server; what is more special stands first."""


class NeverSent(PortUnavailable):
    """No server was found, or no connection was free: the operation cannot have taken effect."""


class IndexRefused(PortUnavailable):
    """The records contradict the unique index on active jobs: somebody must clean up by hand."""


class NotStorable(PortError):
    """The record is too large or too deep for MongoDB, or holds a name or text that BSON lacks."""

    code = "record_not_storable"


async def call_mongo(
    seconds: float, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """One bridged operation with a deadline; what fails in it is a PortError with fixed text."""
    try:
        with trio.fail_after(seconds):
            return await run_asyncio(fn, *args, **kwargs)
    except DRIVER_FAILURES as error:
        failure = translate(error)
    # asyncio.wait_for of Python 3.11 may swallow a cancellation, and the call runs on to its
    # deadline: whoever cancelled us expects Cancelled, not the failure that this ended in.
    await trio.lowlevel.checkpoint_if_cancelled()
    # Raised out here, so that the driver's text does not travel on as context.
    raise failure


def _why_none(text: str) -> str:
    """In fixed words, what the driver's text says of the servers that it tried."""
    for sign, meaning in _SIGNS.items():
        if sign in text:
            return f": {meaning}"
    return ""


def translate(error: BaseException) -> PortError:
    """Class names and the server's numeric codes are all that a text keeps of a foreign error."""
    match error:
        case InvalidDocument() | UnicodeError() | RecursionError():
            return NotStorable("the record cannot be stored")
        case ServerSelectionTimeoutError():
            return NeverSent(f"no record store server was found in time{_why_none(str(error))}")
        case OperationFailure():
            return _of_code(_code(error))
        case BSONError():
            return OperationRefused("the record store's answer cannot be read")
        case trio.TooSlowError():
            return PortUnavailable("the record store did not answer in time: timeout")
        case _:
            return PortUnavailable(f"the record store did not answer: {type(error).__name__}")


def _code(failure: OperationFailure) -> int | None:
    """Of several writes that of the first which failed: their own says only that something did."""
    if not isinstance(failure, BulkWriteError):
        return failure.code
    details = failure.details
    failed = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
    return next((each.get("code") for each in failed), failure.code)


def _of_code(code: int | None) -> PortError:
    if code in _TOO_LARGE:
        return NotStorable("the record cannot be stored")
    if code in _PASSING:
        return PortUnavailable(f"the record store cannot serve the operation: code {code}")
    return OperationRefused(f"the record store refused the operation: code {code}")
