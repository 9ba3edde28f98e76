"""One work queue of either kind, with what a test needs to look at it from outside."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import MessagePublisher, OutgoingMessage, WorkBacklog, WorkConsumer

REJECTED_AT = datetime(2026, 3, 14, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    body: bytes
    headers: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueue:
    name: str
    publisher: MessagePublisher
    backlog: WorkBacklog
    consumer: WorkConsumer
    dead_letters: Callable[[], Awaitable[list[DeadLetter]]] = field(repr=False)

    def message(
        self, body: str = "{}", headers: Mapping[str, HeaderValue] | None = None
    ) -> OutgoingMessage:
        return OutgoingMessage(
            exchange="", routing_key=self.name, body=body.encode(), headers=headers or {}
        )


def broker_address(url: str) -> BrokerAddress:
    parts = urlsplit(url)
    return BrokerAddress(
        scheme=parts.scheme,
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 5672,
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        vhost=unquote(parts.path[1:]) or "/",
    )
