"""The broker's parts, put together: its connections, a breaker for each purpose."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connection import OPEN_TRIES, BrokerConnection
from fetcher.adapters.amqp.consumer import AmqpConsumer
from fetcher.adapters.amqp.dead_letter_level import AmqpDeadLetterLevels
from fetcher.adapters.amqp.idle_connections import closed_when_idle
from fetcher.adapters.amqp.link import HEARTBEAT_SECONDS
from fetcher.adapters.amqp.probe import NeededObjects, rabbitmq_probe
from fetcher.adapters.amqp.publisher import AmqpPublisher
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.dead_letters import DEAD_LETTER_EXCHANGE
from fetcher.ports import Probe, UtcNow

TENANT_HEARTBEAT_SECONDS: Final = 30
"""Of the connections of tenants: 200 tenants have 400, and each heartbeat, theirs and ours, wakes
us. A broker without a sign of life is given up after 93 s instead of 48; a worker that is gone
gives its messages back after 60 s, within the lease and half a minute that a job may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpBroker:
    publisher: AmqpPublisher
    events: AmqpPublisher
    consumer: AmqpConsumer
    publishing: BrokerConnection
    topology: TopologyCheck
    dead_letters: AmqpDeadLetterLevels
    probe: Probe
    breakers: Mapping[str, CircuitBreaker]
    """By what is published: work (and the consumer), events, dead_letters."""
    operating: BrokerConnection
    """For operators, so that nothing of theirs takes a connection of the service along; a tenant's
    is the publishers'."""


@asynccontextmanager
async def open_amqp(
    address: BrokerAddress,
    *,
    work_queue: str,
    consumes: bool,
    now: UtcNow,
    events_exchange: str | None = None,
    idle_seconds: float | None = None,
) -> AsyncGenerator[AmqpBroker, None]:
    """Everything on one broker. Nothing is connected before it is used; leaving closes it.

    ``consumes`` says which connection the probe looks at: the consumer's, or the publishers'. It
    also looks for ``events_exchange``, where there is one. Work,
    events and dead letters share a connection but not a breaker: a missing events exchange must not
    keep jobs from being dispatched. Setting up the consumer shares the one of work.

    With ``idle_seconds`` it is a tenant's, one of hundreds: at most two connections, each closed
    when nobody has used it for so long, and tried once a use, so that a broker that is back meets
    what those who use it have spread and no more (spec configuration 11.8).
    """
    is_tenants = idle_seconds is not None
    tries = 1 if is_tenants else OPEN_TRIES
    heartbeat = TENANT_HEARTBEAT_SECONDS if is_tenants else HEARTBEAT_SECONDS

    def connection(name: str) -> BrokerConnection:
        return BrokerConnection(address, name=name, open_tries=tries, heartbeat_seconds=heartbeat)

    publishing, consuming = connection("fetcher publish"), connection("fetcher consume")
    operating = publishing if is_tenants else BrokerConnection(address, name="fetcher operate")
    breakers = {part: CircuitBreaker() for part in ("work", "events", "dead_letters")}
    breaker = breakers["work"]
    needed = NeededObjects(
        work_queue=work_queue,
        events_exchange=events_exchange,
        dead_letter_exchange=DEAD_LETTER_EXCHANGE if consumes else None,
    )

    def publisher(own_breaker: CircuitBreaker) -> AmqpPublisher:
        return AmqpPublisher(publishing, work_queue=work_queue, breaker=own_breaker)

    async with AsyncExitStack() as stack:
        for each in dict.fromkeys((publishing, consuming, operating)):
            stack.push_async_callback(each.aclose)
        if idle_seconds is not None:
            await stack.enter_async_context(
                closed_when_idle((publishing, consuming), idle_seconds=idle_seconds)
            )
        yield AmqpBroker(
            publisher=publisher(breaker),
            events=publisher(breakers["events"]),
            consumer=AmqpConsumer(
                consuming,
                queue=work_queue,
                dead_letters=publisher(breakers["dead_letters"]),
                breaker=breaker,
                now=now,
            ),
            dead_letters=AmqpDeadLetterLevels(publishing, now=now),
            publishing=publishing,
            topology=TopologyCheck(publishing),
            breakers=breakers,
            probe=rabbitmq_probe(consuming if consumes else publishing, breaker, needed),
            operating=operating,
        )
