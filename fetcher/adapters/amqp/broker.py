"""The broker's parts, put together: two connections, one breaker."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.consumer import AmqpConsumer
from fetcher.adapters.amqp.probe import NeededObjects, rabbitmq_probe
from fetcher.adapters.amqp.publisher import AmqpPublisher
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.dead_letters import DEAD_LETTER_EXCHANGE
from fetcher.ports import Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpBroker:
    publisher: AmqpPublisher
    events: AmqpPublisher
    consumer: AmqpConsumer
    publishing: BrokerConnection
    topology: TopologyCheck
    probe: Probe


@asynccontextmanager
async def open_amqp(
    address: BrokerAddress, *, work_queue: str, consumes: bool, events_exchange: str | None = None
) -> AsyncGenerator[AmqpBroker, None]:
    """Everything on one broker. Nothing is connected before it is used; leaving closes it.

    ``consumes`` says which connection the probe looks at: the consumer's, or the publishers'. It
    also looks for ``events_exchange``, where there is one. Work,
    events and dead letters share a connection but not a breaker: a missing events exchange must not
    keep jobs from being dispatched. Setting up the consumer shares the one of work.
    """
    publishing = BrokerConnection(address, name="fetcher publish")
    consuming = BrokerConnection(address, name="fetcher consume")
    breaker = CircuitBreaker()
    needed = NeededObjects(
        work_queue=work_queue,
        events_exchange=events_exchange,
        dead_letter_exchange=DEAD_LETTER_EXCHANGE if consumes else None,
    )

    def publisher(own_breaker: CircuitBreaker) -> AmqpPublisher:
        return AmqpPublisher(publishing, work_queue=work_queue, breaker=own_breaker)

    try:
        yield AmqpBroker(
            publisher=publisher(breaker),
            events=publisher(CircuitBreaker()),
            consumer=AmqpConsumer(
                consuming,
                queue=work_queue,
                dead_letters=publisher(CircuitBreaker()),
                breaker=breaker,
            ),
            publishing=publishing,
            topology=TopologyCheck(publishing),
            probe=rabbitmq_probe(consuming if consumes else publishing, breaker, needed),
        )
    finally:
        await consuming.aclose()
        await publishing.aclose()
