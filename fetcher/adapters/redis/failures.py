"""The one place where redis-py's exceptions become ours."""

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

import trio
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from fetcher.bridge import CancelledInside, run_asyncio
from fetcher.domain.errors import PortUnavailable

P = ParamSpec("P")
T = TypeVar("T")

# UnicodeError: a host name that no resolver can encode. RecursionError and ValueError: an answer
# that is nested too deep for the parser, or no Redis protocol at all.
DRIVER_FAILURES: Final = (
    RedisError,
    CancelledInside,
    OSError,
    RecursionError,
    ValueError,
    trio.TooSlowError,
)


async def call_redis(
    seconds: float, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """One bridged operation with a deadline; what fails in it is PortUnavailable with fixed text.

    A connection whose call was cut off is closed by redis-py itself.
    """
    try:
        with trio.fail_after(seconds):
            return await run_asyncio(fn, *args, **kwargs)
    except DRIVER_FAILURES as error:
        failure = PortUnavailable(f"redis {reason_of(error)}")
    # asyncio.wait_for of Python 3.11 may swallow a cancellation: see adapters/mongo/failures.py.
    await trio.lowlevel.checkpoint_if_cancelled()
    # Raised out here, so that the driver's text does not travel on as context.
    raise failure


def reason_of(error: BaseException) -> str:
    """A few fixed words: a server's own text may repeat what it was sent."""
    match error:
        case trio.TooSlowError() | RedisTimeoutError() | TimeoutError():
            return "did not answer in time: timeout"
        case AuthenticationError() | AuthorizationError():
            return "refused the credentials"
        case NoPermissionError():
            return "does not permit its user what is needed"
        case ResponseError():
            return "refused the operation"
        case _:
            return "cannot be reached"
