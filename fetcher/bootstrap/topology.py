"""The broker's objects and the bucket's rule, for the command line."""

from dataclasses import dataclass

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.topology import QueueType
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.s3.lifecycle import BucketRule, abort_rule, expiry_rule
from fetcher.adapters.s3.store import open_s3
from fetcher.bootstrap.adapters import topology_names
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.command_places import open_places
from fetcher.bootstrap.command_target import CommandTarget
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


async def settle_topology(target: CommandTarget, order: TopologyOrder) -> list[Finding]:
    """Look at everything and, where ordered, declare what is missing.

    Raise PortUnavailable where broker or store are away, and TenantError.
    """
    settings = target.settings
    async with open_places(target) as places:
        findings = await broker_findings(settings, await places.broker_address(), order)
    if not settings.object_store_is_embedded:
        findings += await bucket_findings(target, create=order.puts_bucket_rule)
    return findings


async def broker_findings(
    settings: Settings, address: BrokerAddress, order: TopologyOrder
) -> list[Finding]:
    connection = BrokerConnection(address, name="fetcher topology")
    try:
        return await TopologyCheck(connection).settle(
            topology_names(settings),
            create=order.create,
            queue_type=order.queue_type,
            consumer_timeout_seconds=settings.rabbitmq_consumer_timeout_sec,
        )
    finally:
        await connection.aclose()


async def bucket_findings(target: CommandTarget, *, create: bool) -> list[Finding]:
    settings = target.settings
    async with open_s3(s3_location(settings)) as bucket:
        lifecycle = bucket.lifecycle()
        found = [await lifecycle.settle(rule, create=create) for rule in bucket_rules(target)]
        if not settings.result_retention_days:
            expiring = await lifecycle.expiring_results(target.key_prefix)
            found += [expiring] if expiring is not None else []
        return found


def bucket_rules(target: CommandTarget) -> list[BucketRule]:
    """What the bucket is asked to do by itself. Unfinished uploads are all tenants' alike."""
    days, tenant_id = target.settings.result_retention_days, target.tenant.id
    rules = [abort_rule(target.settings.object_storage_key_prefix)]
    if days:
        rules.append(expiry_rule(target.key_prefix, days=days, now=utc_now(), tenant_id=tenant_id))
    return rules
