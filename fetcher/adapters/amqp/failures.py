"""The one place where aiormq's exceptions become ours."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

import trio
from aiormq.exceptions import (
    AMQPError,
    AuthenticationError,
    ChannelAccessRefused,
    ChannelInvalidStateError,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    ProbableAuthenticationError,
    PublishError,
)

from fetcher.bridge import CancelledInside, run_asyncio
from fetcher.domain.errors import (
    OperationRefused,
    PortError,
    PortUnavailable,
    QueueFull,
    QueueMissing,
    Unroutable,
)

P = ParamSpec("P")
T = TypeVar("T")

# ValueError: a name or value that the client library does not send. UnicodeError, one of them: a
# host name that no resolver can encode.
TRANSPORT_FAILURES: Final = (
    AMQPError,
    ChannelInvalidStateError,
    CancelledInside,
    OSError,
    ValueError,
    trio.TooSlowError,
)

NOT_FOUND: Final = 404
PRECONDITION_FAILED: Final = 406
_REFUSALS: Final = {
    ChannelAccessRefused: 403,
    ChannelNotFoundEntity: NOT_FOUND,
    ChannelLockedResource: 405,
    ChannelPreconditionFailed: PRECONDITION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the broker closed the channel: AMQP's code and its own text, to be read, not shown."""

    code: int
    text: str


async def refusal_of(operation: Awaitable[object]) -> Refusal | None:
    """One operation on a channel, which is closed after a refusal. Runs on the asyncio side."""
    try:
        await operation
    except tuple(_REFUSALS) as error:
        return Refusal(_REFUSALS[type(error)], str(error))
    return None


async def call_broker(
    seconds: float, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """One bridged operation with a deadline; what fails in it is a PortError with fixed text."""
    try:
        with trio.fail_after(seconds):
            return await run_asyncio(fn, *args, **kwargs)
    except TRANSPORT_FAILURES as error:
        failure = translate(error)
    # Raised out here, so that the driver's text does not travel on as context.
    raise failure


def translate(error: BaseException) -> PortError:
    match error:
        case PublishError():
            return Unroutable("the broker returned the message: no queue is bound to its route")
        case DeliveryError():
            # A nack: of a queue that is full and rejects, or whose process is going away just now.
            return QueueFull("the broker refused the message: its queue takes nothing for now")
        case ChannelNotFoundEntity():
            return QueueMissing("the broker has no such queue or exchange")
        case AuthenticationError() | ProbableAuthenticationError():
            return PortUnavailable("the broker refused the credentials")
        case _:
            return _unanswered(error)


def _unanswered(error: BaseException) -> PortError:
    match error:
        case trio.TooSlowError() | TimeoutError():
            return PortUnavailable("the broker did not answer in time: timeout")
        case ValueError() if not isinstance(error, UnicodeError):
            return OperationRefused("the broker's client refused a name or value")
        case _:
            return PortUnavailable("the connection to the broker failed")
