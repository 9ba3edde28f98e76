"""The objects that must lie on the broker (spec worker-and-events 1.1, decisions row DLQ).

One table: what is declared, what is verified and ``config/rabbitmq/definitions.json`` follow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from fetcher.adapters.dead_letters import (
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    DEAD_LETTER_QUEUE,
)

Arguments: TypeAlias = Mapping[str, str | int]

WORK_EXCHANGE: Final = "fetcher.extract-external-data.exchange"
WORK_QUEUE: Final = "fetcher.extract-external-data.queue"
WORK_KEY: Final = "fetcher.job.key"
EVENTS_EXCHANGE: Final = "fetcher.job.events"
EVENT_QUEUES: Final = {
    "fetcher.job.completed.queue": "job.completed",
    "fetcher.job.failed.queue": "job.failed",
}

DEAD_LETTER_TTL_MS: Final = 604_800_000
DEAD_LETTER_MAX_MESSAGES: Final = 10_000

WORK_DELIVERY_LIMIT: Final = 50
"""A message is put back at each shutdown and each outage of the record store. Beyond this it is a
dead letter, and its job is dispatched anew from the record after ten minutes."""

DEAD_LETTER_DELIVERY_LIMIT: Final = 1_000_000
"""In effect none: each look at the dead letters is a delivery, RabbitMQ 4 drops a message at its
20th unless another limit is set, and older ones do not know -1."""

CONSUMER_TIMEOUT_SINCE: Final = (3, 12)
"""The first RabbitMQ that knows ``x-consumer-timeout``."""


UNUSED: Final = "without it: nothing, since Fetcher publishes jobs to the queue itself"
HELD_BY_WORKERS: Final = (
    "without it: what is rejected stays with its worker (fetcher_deliveries_rejected_waiting)"
)
EVENTS_WAIT: Final = (
    "an example of a subscriber; without any, events wait in their records (fetcher_outbox_pending)"
)


class QueueType(StrEnum):
    QUORUM = "quorum"
    CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class Exchange:
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Queue:
    """Durable, neither exclusive nor deleted by itself. ``classic``: what a classic queue of that
    name, which an operator declared, must have. ``of_any_type``: a stream serves too, since
    nothing of ours takes messages off it."""

    name: str
    arguments: Arguments = field(default_factory=dict)
    classic: Arguments = field(default_factory=dict)
    of_any_type: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    exchange: str
    queue: str
    key: str
    unbound: str
    """What shows where it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    exchanges: tuple[Exchange, ...]
    queues: tuple[Queue, ...]
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyNames:
    """What settings may name otherwise; the queues of events are examples of subscribers."""

    work_exchange: str = WORK_EXCHANGE
    work_queue: str = WORK_QUEUE
    events_exchange: str = EVENTS_EXCHANGE
    event_queues: Mapping[str, str] = field(default_factory=lambda: dict(EVENT_QUEUES))
    dead_letter_exchange: str = DEAD_LETTER_EXCHANGE
    dead_letter_queue: str = DEAD_LETTER_QUEUE


def topology(
    names: TopologyNames,
    *,
    queue_type: QueueType = QueueType.QUORUM,
    consumer_timeout_ms: int | None = None,
) -> Topology:
    """3 exchanges, 4 queues and 4 bindings. ``consumer_timeout_ms`` None: it is not set."""
    dead, dead_queue = names.dead_letter_exchange, names.dead_letter_queue
    return Topology(
        exchanges=(
            Exchange(names.work_exchange, "direct"),
            Exchange(dead, "direct"),
            Exchange(names.events_exchange, "topic"),
        ),
        queues=(
            _queue(names.work_queue, queue_type, *_work_arguments(dead, consumer_timeout_ms)),
            _queue(dead_queue, queue_type, *_dead_letter_arguments()),
            *(Queue(name, of_any_type=True) for name in names.event_queues),
        ),
        bindings=(
            Binding(names.work_exchange, names.work_queue, WORK_KEY, UNUSED),
            Binding(dead, dead_queue, DEAD_LETTER_KEY, HELD_BY_WORKERS),
            *(
                Binding(names.events_exchange, name, key, EVENTS_WAIT)
                for name, key in names.event_queues.items()
            ),
        ),
    )


def dead_letters(name: str = DEAD_LETTER_QUEUE) -> Queue:
    """The queue of dead letters alone, as the table has it."""
    return _queue(name, QueueType.QUORUM, *_dead_letter_arguments())


def _queue(name: str, queue_type: QueueType, quorum: Arguments, classic: Arguments) -> Queue:
    return Queue(name, quorum if queue_type is QueueType.QUORUM else classic, classic)


def _work_arguments(dead: str, consumer_timeout_ms: int | None) -> tuple[Arguments, Arguments]:
    timeout: dict[str, str | int] = (
        {} if consumer_timeout_ms is None else {"x-consumer-timeout": consumer_timeout_ms}
    )
    classic: Arguments = {
        "x-dead-letter-exchange": dead,
        "x-dead-letter-routing-key": DEAD_LETTER_KEY,
        **timeout,
    }
    # At-least-once dead-lettering needs a queue that refuses rather than drops.
    quorum: Arguments = {
        "x-queue-type": "quorum",
        **classic,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": WORK_DELIVERY_LIMIT,
    }
    return quorum, classic


def _dead_letter_arguments() -> tuple[Arguments, Arguments]:
    classic: Arguments = {
        "x-message-ttl": DEAD_LETTER_TTL_MS,
        "x-max-length": DEAD_LETTER_MAX_MESSAGES,
        "x-overflow": "reject-publish",
    }
    quorum: Arguments = {
        "x-queue-type": "quorum",
        **classic,
        "x-delivery-limit": DEAD_LETTER_DELIVERY_LIMIT,
    }
    return quorum, classic


def definitions(wanted: Topology) -> dict[str, object]:
    """As RabbitMQ imports them (``management.load_definitions``), for vhost ``/``.

    Without a user: a shipped password would be a known one.
    """
    return {
        "vhosts": [{"name": "/"}],
        "exchanges": [
            {
                "name": exchange.name,
                "vhost": "/",
                "type": exchange.kind,
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {},
            }
            for exchange in wanted.exchanges
        ],
        "queues": [
            {
                "name": queue.name,
                "vhost": "/",
                "durable": True,
                "auto_delete": False,
                "arguments": dict(queue.arguments),
            }
            for queue in wanted.queues
        ],
        "bindings": [
            {
                "source": binding.exchange,
                "vhost": "/",
                "destination": binding.queue,
                "destination_type": "queue",
                "routing_key": binding.key,
                "arguments": {},
            }
            for binding in wanted.bindings
        ],
    }
