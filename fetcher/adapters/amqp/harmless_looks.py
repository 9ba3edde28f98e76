"""Whether a queue's letters stand being looked at (decision 041).

A look takes a letter and puts it back. A quorum queue counts that as a delivery, and drops the
letter after some of them.
"""

from typing import Final

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.topology import dead_letters
from fetcher.adapters.amqp.topology_check import Arguments, TopologyCheck, is_classic

SAFE_DELIVERY_LIMIT: Final = 100_000
"""Of a letter's seven days a worker's hourly looks are 168: room for hundreds of workers that
start again and again."""
LIMITS_UNASKED_SINCE: Final = (4,)
"""The first RabbitMQ whose quorum queues drop a message at its 20th delivery unless told not to."""


async def may_look(connection: BrokerConnection, queue: str) -> bool:
    """Whether a delivery more costs a letter of the queue nothing. Raises PortUnavailable."""
    version = await connection.broker_version()
    actual = await TopologyCheck(connection).arguments_of(dead_letters(queue))
    return is_look_harmless(actual, version)


def is_look_harmless(actual: Arguments | None, broker_version: tuple[int, ...]) -> bool:
    """``actual`` None: our user may not compare the queue's arguments."""
    if actual is not None and is_classic(actual):
        return True
    limit = None if actual is None else actual.get("x-delivery-limit")
    if isinstance(limit, int):
        return limit < 0 or limit >= SAFE_DELIVERY_LIMIT
    return () < broker_version < LIMITS_UNASKED_SINCE
