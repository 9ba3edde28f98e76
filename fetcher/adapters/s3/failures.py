"""The one place where the exceptions of botocore and aiohttp become ours."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import aiohttp
import trio
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
    SSLError,
)
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.parsers import ResponseParserError

from fetcher.bridge import CancelledInside, run_asyncio
from fetcher.domain.backoff import full_jitter
from fetcher.domain.probe_text import safe_error_text

T = TypeVar("T")

TRIES: Final = 3
BACKOFF_BASE_SECONDS: Final = 0.5
BACKOFF_CAP_SECONDS: Final = 5.0

FOREIGN_FAILURES: Final = (
    BotoCoreError,
    ClientError,
    aiohttp.ClientError,
    CancelledInside,
    OSError,
    trio.TooSlowError,
)

_UNREADABLE: Final = (
    *(ResponseParserError, ValueError, LookupError, TypeError, ArithmeticError),
    RuntimeError,
)
"""What the driver raises for an answer that is no XML, or whose times and numbers are none, and
what we raise where a part is missing: a page of some proxy, say, that comes with status 200."""

_TIMEOUTS: Final = (trio.TooSlowError, TimeoutError, ConnectTimeoutError, ReadTimeoutError)
_TRANSPORT: Final = (
    NoConnectionError,
    HTTPClientError,
    IncompleteReadError,
    aiohttp.ClientError,
    OSError,
    CancelledInside,
)
_TRANSIENT_CODES: Final = frozenset(
    {
        # What arrived is not what was sent: it was torn or changed on its way.
        "BadDigest",
        "IncompleteBody",
        "XAmzContentSHA256Mismatch",
        # The store is busy, or was.
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
    }
)


class StoreFailure(Exception):
    """What the store answered, in our words. It never leaves this package."""

    def __init__(self, reason: str, *, is_transient: bool, code: str = "", status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_transient = is_transient
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Deadline:
    """``seconds`` for each try. Transient failures are tried again until ``tries`` are used up and
    ``outage_seconds`` have passed, whichever comes last."""

    seconds: float
    tries: int = TRIES
    outage_seconds: float = 0.0

    def is_over(self, *, tried: int, began_at: float) -> bool:
        is_outage_over = trio.current_time() - began_at >= self.outage_seconds
        return tried >= self.tries and is_outage_over


async def call_store(deadline: Deadline, operation: Callable[[], Awaitable[T]]) -> T:
    """One bridged operation, with a deadline for each try; raises StoreFailure.

    Transient failures (no connection, no answer, 5xx, throttling) are tried again, so the operation
    must be one that may run twice.
    """
    tried, began_at = 0, trio.current_time()
    while True:
        try:
            with trio.fail_after(deadline.seconds):
                return await run_asyncio(_read, operation)
        except StoreFailure as unreadable:
            failure = unreadable
        except FOREIGN_FAILURES as error:
            failure = translate(error)
        tried += 1
        if not failure.is_transient or deadline.is_over(tried=tried, began_at=began_at):
            raise failure
        await trio.sleep(back_off(tried - 1))


async def _read(operation: Callable[[], Awaitable[T]]) -> T:
    """On the asyncio side, so that what is raised between the loops is never taken for an
    answer's."""
    try:
        return await operation()
    except FOREIGN_FAILURES:
        raise
    except _UNREADABLE:
        failure = StoreFailure("the answer cannot be read", is_transient=True)
    raise failure


def back_off(tried: int) -> float:
    return full_jitter(tried, base_seconds=BACKOFF_BASE_SECONDS, cap_seconds=BACKOFF_CAP_SECONDS)


def translate(error: BaseException) -> StoreFailure:
    if isinstance(error, ClientError):
        return _answered(error)
    if isinstance(error, _TIMEOUTS):
        return StoreFailure("timeout", is_transient=True)
    if isinstance(error, SSLError):
        return StoreFailure("TLS failed", is_transient=False)
    if isinstance(error, _TRANSPORT):
        return StoreFailure("connection failed", is_transient=True)
    # Left over: BotoCoreError's own, such as missing credentials or an unusable bucket name.
    return StoreFailure(safe_error_text(type(error).__name__), is_transient=False)


def _answered(error: ClientError) -> StoreFailure:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    is_transient = status >= 500 or status == 429 or code in _TRANSIENT_CODES
    return StoreFailure(_reason(code, status), is_transient=is_transient, code=code, status=status)


def _reason(code: str, status: int) -> str:
    lowered = code.lower()
    if code == "NoSuchKey":
        return "object not found"
    if code in {"NotFound", "404"} or "nosuchbucket" in lowered:
        return "bucket not found"
    if status == 403 or "accessdenied" in lowered or "forbidden" in lowered:
        return "access denied"
    return safe_error_text(f"the store answered {status} {code}"[:100])
