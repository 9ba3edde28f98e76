"""Dead letters of the broker's own making, and windows that break."""

import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import trio
from aiormq import Channel, spec

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.memory import open_memory_records
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.commands import operate_dead_letters
from fetcher.commands.dead_letters import PAGE, Choice, DeadLetters, Examined
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.operate_dead_letters import Looked, OperateDeadLetters, Stop
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.send_work import SendWork
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageSigner, MessageVerifier
from fetcher.domain.errors import PortUnavailable, QueueMissing
from fetcher.ports import OutgoingMessage
from tests.contract.dead_letters.conftest import publish_all
from tests.contract.queue.work_queues import broker_address
from tests.contract.records.builders import a_job
from tests.faults.proxy import FaultProxy, fault_proxy
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

KEY = b"k" * 32
HUNG_SECONDS = 20.0
"""A look's deadline, and what closing takes: less than the 30 s of a call that it broke off."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def connection(amqp_url: str) -> AsyncIterator[BrokerConnection]:
    async with open_asyncio(pytest.fail):
        opened = BrokerConnection(broker_address(amqp_url), name="test")
        yield opened
        await opened.aclose()


@pytest.fixture
async def names(connection: BrokerConnection, amqp_name: Callable[[str], str]) -> TopologyNames:
    """Everything of the table, declared under names of this test."""
    own = TopologyNames(
        work_exchange=amqp_name("jobs"),
        work_queue=amqp_name("work"),
        events_exchange=amqp_name("events"),
        event_queues={},
        dead_letter_exchange=amqp_name("dlx"),
        dead_letter_queue=amqp_name("dlq"),
    )
    await TopologyCheck(connection).settle(own, create=True)
    return own


@pytest.fixture
async def proxy(amqp_url: str) -> AsyncIterator[FaultProxy]:
    address = broker_address(amqp_url)
    async with fault_proxy(address.host, address.port) as opened:
        yield opened


class _Sent:
    def __init__(self) -> None:
        self.messages: list[OutgoingMessage] = []

    async def publish(self, message: OutgoingMessage) -> None:
        await trio.lowlevel.checkpoint()
        self.messages.append(message)


async def a_message(work_queue: str) -> OutgoingMessage:
    sent = _Sent()
    sender = SendWork(publisher=sent, signer=MessageSigner(KEY), queue=work_queue, now=utc_now)
    await sender.send(a_job())
    return sent.messages[0]


async def ready(queue: AmqpDeadLetterQueue) -> int:
    async with queue.open() as window:
        return window.total


async def wait_for(queue: AmqpDeadLetterQueue, count: int) -> None:
    async def is_so() -> bool:
        return await ready(queue) == count

    await eventually(is_so, deadline_seconds=15.0, what=f"{count} dead letters")


async def test_what_the_broker_dead_lettered_is_genuine_by_its_first_route(
    connection: BrokerConnection, names: TopologyNames
) -> None:
    await publish_all(connection, names.work_queue, [await a_message(names.work_queue)])

    async def reject(channel: Channel) -> None:
        message = await channel.basic_get(names.work_queue)
        assert message.delivery_tag is not None
        await channel.basic_nack(message.delivery_tag, requeue=False)

    channel = await connection.open_channel(confirms=False)
    await run_asyncio(reject, channel)
    await connection.close_channel(channel)
    queue = AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue)
    await wait_for(queue, 1)
    verifier = VerifyWork(verifier=MessageVerifier([KEY]), now=utc_now)
    found: list[Examined] = []
    async with queue.open() as window:
        async for page in DeadLetters(window, verifier).pages(Choice()):
            found += page
    (each,) = found
    assert (each.letter.reason, each.letter.exchange) == ("rejected", "")
    assert (each.letter.routing_key, each.is_genuine) == (names.work_queue, True)


async def test_a_window_whose_connection_is_cut_loses_no_letter(
    connection: BrokerConnection, names: TopologyNames, proxy: FaultProxy, amqp_url: str
) -> None:
    message = await a_message(names.work_queue)
    await publish_all(connection, names.dead_letter_queue, [message] * 20)
    direct = AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue)
    await wait_for(direct, 20)
    through = BrokerConnection(
        replace(broker_address(amqp_url), host="127.0.0.1", port=proxy.port), name="test"
    )
    fragile = AmqpDeadLetterQueue(through, queue=names.dead_letter_queue)
    with trio.fail_after(30):
        async with fragile.open() as window:
            page = await window.next_page(limit=5)
            await window.remove(page[:2])
            assert await ready(direct) < 20
            proxy.cut()
            with pytest.raises(PortUnavailable):
                await window.next_page(limit=5)
    await through.aclose()
    await wait_for(direct, 18)


async def test_letters_that_somebody_else_took_meanwhile_end_the_window(
    connection: BrokerConnection, names: TopologyNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetcher.adapters.amqp.dead_letter_queue.QUIET_SECONDS", 0.2)
    message = await a_message(names.work_queue)
    await publish_all(connection, names.dead_letter_queue, [message] * 3)
    queue = AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue)
    await wait_for(queue, 3)
    async with queue.open() as first, queue.open() as second:
        assert (first.total, second.total) == (3, 3)
        assert len(await first.next_page(limit=2)) == 2
        assert len(await second.next_page(limit=9)) == 1
        assert await second.next_page(limit=9) == []
    await wait_for(queue, 3)


async def declare(connection: BrokerConnection, name: str, limit: int) -> None:
    async def run(channel: Channel) -> None:
        await channel.queue_declare(
            name, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": limit}
        )

    channel = await connection.open_channel(confirms=False)
    await run_asyncio(run, channel)
    await connection.close_channel(channel)


def operated(queue: AmqpDeadLetterQueue) -> OperateDeadLetters:
    """For looking alone: no record is asked."""
    records = open_memory_records(utc_now)
    return OperateDeadLetters(
        queue=queue,
        verifier=VerifyWork(verifier=MessageVerifier([KEY]), now=utc_now),
        outbox=records.dispatch,
        held_back=HeldBackJobs(
            jobs=records.jobs,
            breakers=records.breakers,
            resolve=ResolveSources(internal=environment_sources(()), stored=records.connections),
            now=utc_now,
        ),
    )


async def test_operators_wear_no_letter_out_by_looking(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    name = amqp_name("dlq")
    await declare(connection, name, limit=2)
    await publish_all(connection, name, [await a_message("work")])
    queue = AmqpDeadLetterQueue(connection, queue=name)
    await wait_for(queue, 1)
    assert not await queue.survives_looks()
    letters = operated(queue)
    for _ in range(4):
        told: list[Examined] = []
        looked = await letters.list(Choice(), told.append)
        assert (looked, told) == (Looked(total=1, stop=Stop.DELIVERY_LIMIT), [])
    async with queue.open() as window:
        (letter,) = await window.next_page(limit=5)
    assert "x-delivery-count" not in letter.headers


def behind(proxy: FaultProxy, amqp_url: str) -> BrokerConnection:
    return BrokerConnection(
        replace(broker_address(amqp_url), host="127.0.0.1", port=proxy.port), name="test"
    )


async def test_broker_that_hangs_from_the_start_is_told_as_unavailable(
    connection: BrokerConnection,
    names: TopologyNames,
    proxy: FaultProxy,
    amqp_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operate_dead_letters, "LIST_SECONDS", 1.0)
    message = await a_message(names.work_queue)
    await publish_all(connection, names.dead_letter_queue, [message] * 3)
    await wait_for(AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue), 3)
    through = behind(proxy, amqp_url)
    letters = operated(AmqpDeadLetterQueue(through, queue=names.dead_letter_queue))
    told: list[Examined] = []
    assert (await letters.list(Choice(), told.append)).stop is None
    assert len(told) == 3
    proxy.stall()
    with trio.fail_after(HUNG_SECONDS), pytest.raises(PortUnavailable, match="not reached in time"):
        await letters.list(Choice(), told.append)
    assert len(told) == 3
    await through.aclose()


async def test_broker_that_hangs_with_letters_in_hand_ends_the_look_and_gets_all_back(
    connection: BrokerConnection,
    names: TopologyNames,
    proxy: FaultProxy,
    amqp_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operate_dead_letters, "LIST_SECONDS", 2.0)
    message = await a_message(names.work_queue)
    await publish_all(connection, names.dead_letter_queue, [message] * (PAGE + 20))
    direct = AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue)
    await wait_for(direct, PAGE + 20)
    through = behind(proxy, amqp_url)
    letters = operated(AmqpDeadLetterQueue(through, queue=names.dead_letter_queue))
    told: list[Examined] = []

    def stall_after_a_page(each: Examined) -> None:
        told.append(each)
        if len(told) == PAGE:
            proxy.stall()

    with trio.fail_after(HUNG_SECONDS):
        looked = await letters.list(Choice(), stall_after_a_page)
    assert looked == Looked(total=PAGE + 20, examined=PAGE, stop=Stop.DEADLINE)
    assert len(told) == PAGE
    assert await ready(direct) < PAGE + 20
    await through.aclose()
    proxy.cut()
    await wait_for(direct, PAGE + 20)


class _Hostile(spec.Basic.Properties):
    """Headers as a stranger wrote them."""

    def __init__(self, entries: bytes) -> None:
        super().__init__(message_id="")
        self._entries = entries

    def marshal(self) -> bytes:
        flags = struct.pack(">H", spec.Basic.Properties.flags["headers"])
        return flags + struct.pack(">I", len(self._entries)) + self._entries


def _nested(levels: int) -> bytes:
    inner = b""
    for _ in range(levels):
        inner = b"\x01nF" + struct.pack(">I", len(inner)) + inner
    return inner


@pytest.mark.parametrize(
    "entries", [_nested(4000), b"\x02\xff\xfeV", b"\x01tT" + struct.pack(">Q", 2**64 - 1)]
)
async def test_headers_that_nobody_can_read_do_not_end_the_connection(
    connection: BrokerConnection, names: TopologyNames, entries: bytes
) -> None:
    async def publish(channel: Channel) -> None:
        await channel.basic_publish(
            b"{}", routing_key=names.dead_letter_queue, properties=_Hostile(entries)
        )

    channel = await connection.open_channel(confirms=True)
    await run_asyncio(publish, channel)
    queue = AmqpDeadLetterQueue(connection, queue=names.dead_letter_queue)
    await wait_for(queue, 1)
    async with queue.open() as window:
        (letter,) = await window.next_page(limit=5)
        assert (letter.headers, letter.body, letter.reason) == ({}, b"{}", "")
        await window.remove([letter])
    assert connection.is_open


async def test_a_queue_that_nobody_declared_is_told_as_missing(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    with pytest.raises(QueueMissing, match="no such queue"):
        async with AmqpDeadLetterQueue(connection, queue=amqp_name("dlq")).open():
            pass
