"""A stranger's headers must not keep a message out of the dead letters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from fetcher.adapters.amqp.dead_letters import publish_dead_letter
from fetcher.adapters.amqp.wire import encode_headers
from fetcher.domain.errors import PortUnavailable, Unroutable
from fetcher.ports import OutgoingMessage, RejectReason


@dataclass
class RecordingPublisher:
    failure: Exception | None = None
    messages: list[OutgoingMessage] = field(default_factory=list)

    async def publish(self, message: OutgoingMessage) -> None:
        if self.failure is not None:
            raise self.failure
        self.messages.append(message)


@dataclass(frozen=True)
class ForeignDelivery:
    headers: Mapping[str, object]
    body: bytes = b"\xff not even text"
    exchange: str = "some.exchange"
    routing_key: str = "some.key"

    async def ack(self) -> None: ...

    async def reject(self, reason: RejectReason) -> None: ...

    async def requeue(self) -> None: ...


AT = datetime(2026, 3, 14, 9, tzinfo=UTC)


async def reject(headers: Mapping[str, object]) -> OutgoingMessage:
    publisher = RecordingPublisher()
    await publish_dead_letter(
        publisher, ForeignDelivery(headers), RejectReason.MALFORMED, rejected_at=AT
    )
    [message] = publisher.messages
    encode_headers(message.headers)
    return message


OURS = {
    "x-fetcher-reject-reason": "malformed",
    "x-fetcher-original-exchange": "some.exchange",
    "x-fetcher-original-routing-key": "some.key",
    "x-fetcher-rejected-at": "2026-03-14T09:00:00Z",
}


async def test_body_headers_and_route_are_kept() -> None:
    message = await reject({"a": "b", "x-death": [{"count": 1}]})
    assert (message.exchange, message.routing_key) == ("fetcher.dlx", "fetcher.dlq.key")
    assert message.body == b"\xff not even text"
    assert message.headers == {"a": "b", "x-death": [{"count": 1}]} | OURS


async def test_our_headers_win_over_forged_ones() -> None:
    message = await reject({"x-fetcher-reject-reason": "forged"})
    assert message.headers == OURS


def nested(depth: int) -> dict[str, object]:
    table: dict[str, object] = {}
    for _ in range(depth):
        table = {"t": table}
    return table


@pytest.mark.parametrize(
    "headers",
    [{"big": "x" * 70_000}, {"inner": {"bytes": b"\xff"}}, nested(5_000), {"huge": 2**80}],
    ids=["too big for a frame", "bytes in a table", "too deep", "too large a number"],
)
async def test_headers_that_cannot_be_sent_again_are_replaced_by_a_mark(
    headers: Mapping[str, object],
) -> None:
    message = await reject(headers)
    assert message.headers == {"x-fetcher-original-headers-dropped": "true"} | OURS


@pytest.mark.parametrize("failure", [Unroutable("returned"), PortUnavailable("full")])
async def test_dead_letters_that_cannot_be_kept_are_unavailable(failure: Exception) -> None:
    with pytest.raises(PortUnavailable) as caught:
        await publish_dead_letter(
            RecordingPublisher(failure),
            ForeignDelivery({}),
            RejectReason.MALFORMED,
            rejected_at=AT,
        )
    assert caught.value.__context__ is None
