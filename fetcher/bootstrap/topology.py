"""The broker's objects and the bucket's rule, for the command line."""

from dataclasses import dataclass

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.topology import QueueType
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.s3.store import open_s3
from fetcher.bootstrap.adapters import broker_address, topology_names
from fetcher.bootstrap.stores import s3_location
from fetcher.domain.errors import PortError, StartRefused
from fetcher.domain.topology import Finding
from fetcher.settings import Settings

TOPOLOGY_FAILURES = (PortError, StartRefused)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyOrder:
    create: bool
    queue_type: QueueType = QueueType.QUORUM
    puts_bucket_rule: bool = False


async def settle_topology(settings: Settings, order: TopologyOrder) -> list[Finding]:
    """Look at everything and, where ordered, declare what is missing.

    Raise PortUnavailable where broker or store are away.
    """
    findings = await broker_findings(settings, order)
    if not settings.object_store_is_embedded:
        findings.append(await bucket_finding(settings, create=order.puts_bucket_rule))
    return findings


async def broker_findings(settings: Settings, order: TopologyOrder) -> list[Finding]:
    connection = BrokerConnection(broker_address(settings), name="fetcher topology")
    try:
        return await TopologyCheck(connection).settle(
            topology_names(settings),
            create=order.create,
            queue_type=order.queue_type,
            consumer_timeout_seconds=settings.rabbitmq_consumer_timeout_sec,
        )
    finally:
        await connection.aclose()


async def bucket_finding(settings: Settings, *, create: bool) -> Finding:
    async with open_s3(s3_location(settings)) as bucket:
        return await bucket.lifecycle().settle(settings.object_storage_key_prefix, create=create)
