"""No text of the driver, and so no address with its password, survives in an error."""

import traceback
from typing import Any

import pytest
from aiormq import exceptions, spec
from aiormq.abc import DeliveredMessage
from pamqp.header import ContentHeader

from fetcher.adapters.amqp.failures import call_broker
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import (
    OperationRefused,
    PortError,
    PortUnavailable,
    QueueMissing,
    Unroutable,
)

SECRET = "amqp://user:canary-secret@host/"


def returned_message() -> DeliveredMessage:
    returned = spec.Basic.Return(312, SECRET, "", "key")
    no_channel: Any = None
    return DeliveredMessage(
        delivery=returned, header=ContentHeader(), body=SECRET.encode(), channel=no_channel
    )


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (exceptions.AMQPConnectionError(SECRET), PortUnavailable, "failed"),
        (exceptions.ConnectionClosed(320, SECRET), PortUnavailable, "failed"),
        (exceptions.ChannelInvalidStateError(SECRET), PortUnavailable, "failed"),
        (exceptions.ChannelNotFoundEntity(SECRET), QueueMissing, "no such queue"),
        (exceptions.ChannelPreconditionFailed(SECRET), PortUnavailable, "failed"),
        (exceptions.ProbableAuthenticationError(SECRET), PortUnavailable, "credentials"),
        (exceptions.DeliveryError(None, spec.Basic.Nack(1)), PortUnavailable, "refused"),
        (exceptions.PublishError(returned_message(), spec.Basic.Return()), Unroutable, "returned"),
        (TimeoutError(SECRET), PortUnavailable, "timeout"),
        (ConnectionRefusedError(SECRET), PortUnavailable, "failed"),
        (UnicodeError(SECRET), PortUnavailable, "failed"),
        (ValueError(SECRET), OperationRefused, "refused a name"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_each_failure_has_its_port_error_with_fixed_text(
    error: Exception, kind: type[PortError], text: str
) -> None:
    async def fail() -> None:
        raise error

    async with open_asyncio(pytest.fail):
        with pytest.raises(kind, match=text) as caught:
            await call_broker(5, fail)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "canary-secret" not in "".join(traceback.format_exception(caught.value))


async def test_a_programming_error_is_not_disguised() -> None:
    async def fail() -> None:
        raise KeyError("bug")

    async with open_asyncio(pytest.fail):
        with pytest.raises(KeyError):
            await call_broker(5, fail)
