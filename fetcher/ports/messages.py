"""Messages: the work queue, events, dead letters."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.message_envelope import HeaderValue
from fetcher.domain.topology import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A persistent JSON message. The signature among its headers covers exactly this route."""

    exchange: str
    routing_key: str
    body: bytes = field(repr=False)
    headers: Mapping[str, HeaderValue] = field(repr=False)


class MessagePublisher(Protocol):
    async def publish(self, message: OutgoingMessage) -> None:
        """Return once the broker has confirmed it (mandatory, persistent).

        Raise Unroutable when it was returned, PortUnavailable when it was refused or unanswered
        (it may then have been taken: whoever sends again relies on the receiver's claim).
        """


class WorkBacklog(Protocol):
    async def ready_count(self) -> int:
        """Messages of the work queue that no worker holds (a passive declare)."""
        ...


class RejectReason(StrEnum):
    TENANT_MISMATCH = "tenant_mismatch"
    """It names no tenant, or another one than the queue's."""
    BAD_SIGNATURE = "bad_signature"
    PREVIOUS_KEY_ENDED = "previous_key_ended"
    """Signed by a former key, after `APP_ENC_KEY_PREVIOUS_UNTIL`."""
    MALFORMED = "malformed"
    UNKNOWN_JOB = "unknown_job"
    UNREADABLE_JOB = "unreadable_job"


class Delivery(Protocol):
    """One message that the broker handed over; settled exactly once.

    Each way raises DeliveryLost when the consumer is gone: the broker delivers the message anew.
    """

    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, object]: ...
    @property
    def exchange(self) -> str: ...
    @property
    def routing_key(self) -> str: ...

    async def ack(self) -> None: ...

    async def reject(self, reason: RejectReason) -> None:
        """To the dead letters, with the reason and its original route, then acknowledged.

        Raise PortUnavailable while they do not take it: the delivery is still in hand then.
        """

    async def requeue(self) -> None: ...


class Deliveries(Protocol):
    """An open consumer of the work queue."""

    def __aiter__(self) -> AsyncIterator[Delivery]:
        """Deliveries as they come. Raises PortUnavailable when the connection is lost.

        Deliveries in hand can then no longer be settled (their methods raise DeliveryLost); the
        broker will deliver them again.
        """
        ...

    async def stop(self) -> None:
        """Cancel the consumer: the iterator ends, what is in hand can still be settled."""


class WorkConsumer(Protocol):
    def consume(self, *, prefetch: int) -> AbstractAsyncContextManager[Deliveries]:
        """Consume the work queue for as long as the context is open.

        Entering raises PortUnavailable when the queue cannot be reached. Leaving the context
        cancels the consumer, then puts back what was not settled.
        """
        ...


class DeadLetterWindow(Protocol):
    """Letters in hand: nobody else gets them until the window is left."""

    @property
    def total(self) -> int:
        """How many there were when the window was opened; it gives out no more than these."""
        ...

    async def next_page(self, *, limit: int) -> Sequence[DeadLetter]:
        """The next ones, fewer than ``limit`` where they are large; empty after the last."""
        ...

    async def remove(self, letters: Sequence[DeadLetter]) -> None:
        """For good, however the window is left. Until it was left a crash may bring them back."""
        ...

    @property
    def gone(self) -> int:
        """How many of the removed ones nothing brings back any more: all of them once the window
        was left, unless that could not be written."""
        ...


class DeadLetterQueue(Protocol):
    def open(self) -> AbstractAsyncContextManager[DeadLetterWindow]:
        """Leaving puts back, in whatever order, every letter that was not removed."""
        ...

    async def survives_looks(self) -> bool:
        """Whether letters stand any number of looks: a broker may count each as a delivery, and
        drop a letter that was delivered too often. Raise PortUnavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterLevel:
    """How many dead letters nobody holds, and since when the oldest of them lies there (None: there
    is none, or nothing tells)."""

    messages: int
    oldest_at: datetime | None


class DeadLetterLevels(Protocol):
    async def level(self) -> DeadLetterLevel:
        """Count them, without taking one away. Raise PortUnavailable."""
        ...


class DeclareTopology(Protocol):
    async def __call__(self) -> Sequence[Finding]:
        """Declare what is missing on the broker and tell what is there. Nothing is changed."""
        ...
