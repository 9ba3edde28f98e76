"""Declaring and comparing the broker's objects, on a real broker (spec worker-and-events 1.1)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace

import pytest
from aiormq import Channel, spec
from aiormq.abc import DeliveredMessage
from pamqp.common import FieldValue

from fetcher.adapters.amqp.broker import open_amqp
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import count_ready
from fetcher.adapters.amqp.topology import EVENTS_WAIT, WORK_KEY, QueueType, TopologyNames
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.dead_letters import DEAD_LETTER_KEY
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.topology import Finding, FindingStatus
from fetcher.ports import ProbeResult, ProbeStatus
from tests.contract.queue.work_queues import broker_address
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

TIMEOUT_SECONDS = 1800.0


@pytest.fixture
async def connection(amqp_url: str) -> AsyncIterator[BrokerConnection]:
    async with open_asyncio(pytest.fail):
        opened = BrokerConnection(broker_address(amqp_url), name="test")
        yield opened
        await opened.aclose()


@pytest.fixture
def names(amqp_name: Callable[[str], str]) -> TopologyNames:
    return TopologyNames(
        work_exchange=amqp_name("jobs"),
        work_queue=amqp_name("work"),
        events_exchange=amqp_name("events"),
        event_queues={
            amqp_name("completed"): "job.completed",
            amqp_name("failed"): "job.failed",
        },
        dead_letter_exchange=amqp_name("dlx"),
        dead_letter_queue=amqp_name("dlq"),
    )


async def on_channel(
    connection: BrokerConnection, do: Callable[[Channel], Awaitable[object]]
) -> None:
    async def run(channel: Channel) -> None:
        await do(channel)

    channel = await connection.open_channel(confirms=False)
    await run_asyncio(run, channel)
    await connection.close_channel(channel)


async def settle(
    connection: BrokerConnection,
    names: TopologyNames,
    *,
    create: bool,
    queue_type: QueueType = QueueType.QUORUM,
) -> list[Finding]:
    return await TopologyCheck(connection).settle(
        names, create=create, queue_type=queue_type, consumer_timeout_seconds=TIMEOUT_SECONDS
    )


def statuses(findings: list[Finding], kind: str) -> set[FindingStatus]:
    return {found.status for found in findings if found.kind == kind}


def of(findings: list[Finding], name: str) -> Finding:
    (found,) = [found for found in findings if found.name == name]
    return found


@pytest.mark.parametrize("queue_type", list(QueueType))
async def test_everything_is_declared_once_and_then_found_as_it_should_be(
    connection: BrokerConnection, names: TopologyNames, queue_type: QueueType
) -> None:
    before = await settle(connection, names, create=False, queue_type=queue_type)
    assert statuses(before, "exchange") == statuses(before, "queue") == {FindingStatus.MISSING}
    made = await settle(connection, names, create=True, queue_type=queue_type)
    assert [found.kind for found in made] == ["exchange"] * 3 + ["queue"] * 4 + ["binding"] * 4
    assert {found.status for found in made[:7]} == {FindingStatus.CREATED}
    assert statuses(made, "binding") == {FindingStatus.OK}
    again = await settle(connection, names, create=True, queue_type=queue_type)
    assert {found.status for found in again} == {FindingStatus.OK}
    looked = await settle(connection, names, create=False, queue_type=queue_type)
    assert {found.status for found in looked[:7]} == {FindingStatus.OK}
    assert statuses(looked, "binding") == {FindingStatus.UNCHECKED}


async def test_the_bindings_lead_messages_to_their_queues(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await settle(connection, names, create=True)

    async def publish(channel: Channel) -> None:
        await channel.basic_publish(b"1", exchange=names.work_exchange, routing_key=WORK_KEY)
        await channel.basic_publish(
            b"2", exchange=names.dead_letter_exchange, routing_key=DEAD_LETTER_KEY
        )
        for key in names.event_queues.values():
            await channel.basic_publish(b"3", exchange=names.events_exchange, routing_key=key)

    channel = await connection.open_channel(confirms=True)
    await run_asyncio(publish, channel)

    async def has_one(channel: Channel) -> None:
        for queue in (names.work_queue, names.dead_letter_queue, *names.event_queues):
            assert (await channel.queue_declare(queue, passive=True)).message_count == 1

    await run_asyncio(has_one, channel)
    await connection.close_channel(channel)


async def test_a_probe_through_a_binding_would_reach_a_subscriber_and_the_dead_letters(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    """Why `verify` leaves bindings unchecked (decision 041): not even one that expires at once."""
    await settle(connection, names, create=True)
    subscribed, key = next(iter(names.event_queues.items()))
    got: list[bytes] = []
    fleeting = spec.Basic.Properties(expiration="0")

    async def on_message(message: DeliveredMessage) -> None:
        got.append(message.body)

    async def probe(channel: Channel) -> None:
        await channel.basic_consume(subscribed, on_message, no_ack=True)
        for exchange, routing_key in (
            (names.events_exchange, key),
            (names.work_exchange, WORK_KEY),
        ):
            await channel.basic_publish(
                b"probe", exchange=exchange, routing_key=routing_key, properties=fleeting
            )

    channel = await connection.open_channel(confirms=True)
    await run_asyncio(probe, channel)

    async def has_arrived() -> bool:
        dead = await run_asyncio(count_ready, channel, names.dead_letter_queue)
        return (dead, got) == (1, [b"probe"])

    await eventually(has_arrived, deadline_seconds=15.0)
    await connection.close_channel(channel)


async def test_verify_says_what_a_missing_binding_would_cause_and_publishes_nothing(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await settle(connection, names, create=True)
    found = [
        each for each in await settle(connection, names, create=False) if each.kind == "binding"
    ]
    assert all("list_bindings" in each.details[0] for each in found)
    assert [each.details[1].split(":")[0] for each in found[:2]] == ["without it"] * 2
    assert "fetcher_deliveries_rejected_waiting" in found[1].details[1]
    assert {each.details[1] for each in found[2:]} == {EVENTS_WAIT}
    channel = await connection.open_channel(confirms=False)
    for queue in (names.work_queue, names.dead_letter_queue, *names.event_queues):
        assert await run_asyncio(count_ready, channel, queue) == 0
    await connection.close_channel(channel)


async def declared(
    connection: BrokerConnection, queue: str, arguments: Mapping[str, FieldValue]
) -> None:
    await on_channel(
        connection, lambda c: c.queue_declare(queue, durable=True, arguments=dict(arguments))
    )


async def test_classic_queues_of_an_operator_are_accepted_with_what_is_lost(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await declared(
        connection,
        names.work_queue,
        {
            "x-dead-letter-exchange": names.dead_letter_exchange,
            "x-dead-letter-routing-key": DEAD_LETTER_KEY,
        },
    )
    wire = {"x-message-ttl": 604_800_000, "x-max-length": 10_000}
    await declared(connection, names.dead_letter_queue, wire)
    findings = await settle(connection, names, create=True)
    assert [found for found in findings if found.status.is_failure] == []
    work = of(findings, names.work_queue)
    assert (work.status, work.details) == (
        FindingStatus.ACCEPTED,
        ("a classic queue: it is lost with its node",),
    )
    dead = of(findings, names.dead_letter_queue)
    assert (dead.status, dead.details) == (
        FindingStatus.ACCEPTED,
        (
            "a classic queue: it is lost with its node",
            "x-overflow is not set: the oldest dead letters are dropped when it is full",
        ),
    )


async def test_streams_serve_as_no_queue_of_ours(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    for queue in (names.work_queue, names.dead_letter_queue):
        await declared(connection, queue, {"x-queue-type": "stream"})
    for create in (False, True):
        findings = await settle(connection, names, create=create)
        for queue in (names.work_queue, names.dead_letter_queue):
            found = of(findings, queue)
            assert found.status is FindingStatus.DIFFERS, found


async def test_every_argument_that_differs_is_named_with_both_values(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await declared(
        connection,
        names.work_queue,
        {
            "x-queue-type": "quorum",
            "x-dead-letter-exchange": "elsewhere",
            "x-overflow": "drop-head",
            "x-max-length": 7,
        },
    )
    found = of(await settle(connection, names, create=False), names.work_queue)
    assert found.status is FindingStatus.DIFFERS
    assert found.details == (
        f"x-dead-letter-exchange is elsewhere, should be {names.dead_letter_exchange}",
        "x-dead-letter-routing-key is not set, should be fetcher.dlq.key",
        "x-dead-letter-strategy is not set, should be at-least-once",
        "x-max-length is 7, should be not set",
        "x-overflow is drop-head, should be reject-publish",
        "x-delivery-limit is not set: a message may be delivered without limit,"
        " and with RabbitMQ 4 20 times",
    )


async def test_other_attributes_of_queue_and_exchange_are_named(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await on_channel(connection, lambda c: c.queue_declare(names.dead_letter_queue))
    await on_channel(
        connection, lambda c: c.exchange_declare(names.events_exchange, exchange_type="fanout")
    )
    findings = await settle(connection, names, create=True)
    queue, exchange = of(findings, names.dead_letter_queue), of(findings, names.events_exchange)
    assert queue.status is exchange.status is FindingStatus.DIFFERS
    assert queue.details == ("its durable is false",)
    assert exchange.details == ("its type is fanout",)


async def probe(
    amqp_url: str, names: TopologyNames, events_exchange: str | None = None
) -> ProbeResult:
    async with open_amqp(
        broker_address(amqp_url),
        work_queue=names.work_queue,
        events_exchange=events_exchange,
        consumes=False,
        now=utc_now,
    ) as broker:
        return await broker.probe.check()


async def test_readiness_names_the_object_that_is_missing(
    connection: BrokerConnection, names: TopologyNames, amqp_url: str
) -> None:
    missing = await probe(amqp_url, names)
    assert (missing.status, missing.error) == (
        ProbeStatus.DOWN,
        f"queue {names.work_queue} is missing on the broker",
    )
    await declared(connection, names.work_queue, {})
    missing = await probe(amqp_url, names, names.events_exchange)
    assert (missing.status, missing.error) == (
        ProbeStatus.DOWN,
        f"exchange {names.events_exchange} is missing on the broker",
    )
    await on_channel(
        connection, lambda c: c.exchange_declare(names.events_exchange, exchange_type="topic")
    )
    found = await probe(amqp_url, names, names.events_exchange)
    assert (found.status, found.error, found.reason) == (ProbeStatus.UP, None, None)


async def test_a_missing_dead_letter_exchange_is_told_and_does_not_decide(
    connection: BrokerConnection,
    names: TopologyNames,
    amqp_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "fetcher.adapters.amqp.broker.DEAD_LETTER_EXCHANGE", names.dead_letter_exchange
    )
    await declared(connection, names.work_queue, {})
    async with open_amqp(
        broker_address(amqp_url), work_queue=names.work_queue, consumes=True, now=utc_now
    ) as broker:
        result = await broker.probe.check()
        assert (result.status, result.error) == (ProbeStatus.UP, None)
        assert result.reason == (
            f"exchange {names.dead_letter_exchange} is missing on the broker:"
            " what is rejected has nowhere to go"
        )


async def test_a_work_queue_of_its_own_name_is_declared_under_it(
    connection: BrokerConnection, names: TopologyNames, amqp_name: Callable[[str], str]
) -> None:
    other = replace(names, work_queue=amqp_name("other"))
    await settle(connection, other, create=True)
    assert of(await settle(connection, other, create=False), other.work_queue).status is (
        FindingStatus.OK
    )
