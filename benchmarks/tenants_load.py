"""Requests and jobs of many tenants: each job goes through its tenant's queue and events."""

import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pymongo
import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage

from benchmarks.tenants_stage import Stage
from benchmarks.worker_load import RUN_SECONDS, clones, dispatched_job, message_for
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.wire import WireProperties
from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.job_documents import read_job
from fetcher.bridge import open_asyncio, run_asyncio
from tests.e2e.broker import Message, address_of, read_all
from tests.e2e.cluster import postgres_connection
from tests.e2e.tenancy import EVENT_QUEUE, WORK_QUEUE, TenantApi, TenantPlace

SETTLED_SECONDS: Final = 0.03
MOST_EVENTS: Final = 10_000

Load = Mapping[TenantPlace, Sequence[Message]]


def job_of(stage: Stage, api: TenantApi, place: TenantPlace) -> Document:
    """The record of a job of the tenant on a table without rows; nothing else is left of it. No
    worker may run meanwhile."""
    own = api.of(place.tenant_id)
    created = own.connect(postgres_connection(stage.source, configName="empty"))
    if created.status != 201:
        raise SystemExit(f"the connection was not created: {created.body}")
    with pymongo.MongoClient[Document](stage.tenancy.mongo_uri) as client:
        jobs = client[place.database]["job"]
        made = dispatched_job(own, jobs)
        jobs.delete_many({})
    read_all(place.vhost.url, WORK_QUEUE)
    return made


def make_jobs(stage: Stage, place: TenantPlace, like: Document, count: int) -> list[Message]:
    """So many records that were dispatched just now, as the messages that ask for them."""
    documents = clones({**like, "dispatched_at": datetime.now(UTC)}, count)
    with pymongo.MongoClient[Document](stage.tenancy.mongo_uri) as client:
        client[place.database]["job"].insert_many(documents)
    keys, tenant = stage.tenancy.keys, place.tenant_id
    return [message_for(read_job(each), keys, WORK_QUEUE, tenant=tenant) for each in documents]


def scraped(api: TenantApi) -> str:
    address = f"http://127.0.0.1:{api.port}/metrics"
    with urllib.request.urlopen(address, timeout=30) as answer:
        text: bytes = answer.read()
        return text.decode()


def first_request_seconds(api: TenantApi, place: TenantPlace) -> float:
    began_at = time.perf_counter()
    answer = api.of(place.tenant_id).call("GET", "/v1/management/connections")
    if answer.status != 200:
        raise SystemExit(f"the tenant's first request was refused: {answer.body}")
    return time.perf_counter() - began_at


def forget_jobs(stage: Stage, place: TenantPlace) -> None:
    """Of all that nobody has begun: nobody sends them again."""
    with pymongo.MongoClient[Document](stage.tenancy.mongo_uri) as client:
        client[place.database]["job"].delete_many({"status": "pending"})


def run_through(load: Load) -> float:
    """Seconds from the first message to the last job's event; blocking."""
    return trio.run(_run_through, load)


@dataclass(frozen=True, slots=True)
class Waits:
    seconds: Sequence[float]
    """From a message to its job's event, of each job of the quiet tenant."""
    left: int
    """Messages of the busy tenant that still lay in its queue then; they are taken out of it."""


def one_at_a_time(
    quiet: TenantPlace, messages: Sequence[Message], busy: TenantPlace, queued: Sequence[Message]
) -> Waits:
    """Each message after the job before has ended, while ``queued`` lie in the queue of ``busy``;
    blocking."""
    return trio.run(_one_at_a_time, quiet, messages, busy, queued)


class _Queues:
    """One tenant's: publishes work, and says when a job has ended."""

    def __init__(self, place: TenantPlace) -> None:
        self._connection = BrokerConnection(address_of(place.vhost.url), name="bench")
        self._told, self._ended = trio.open_memory_channel[str](MOST_EVENTS)
        self._channel: Channel

    async def open(self) -> None:
        self._channel = await self._connection.open_channel(confirms=False)
        await run_asyncio(self._subscribe)

    async def close(self) -> None:
        await self._connection.aclose()

    async def publish(self, messages: Sequence[Message]) -> None:
        await run_asyncio(self._publish, messages)

    async def purge(self) -> int:
        purged = await run_asyncio(partial(self._channel.queue_purge, WORK_QUEUE))
        return purged.message_count or 0

    async def ended(self) -> None:
        if (how := await self._ended.receive()) != "job.completed":
            raise SystemExit(f"a job of the benchmark ended with {how}")

    async def _subscribe(self) -> None:
        await self._channel.basic_consume(EVENT_QUEUE, self._on_event, no_ack=True)

    async def _on_event(self, message: DeliveredMessage) -> None:
        self._told.send_nowait(message.routing_key or "")

    async def _publish(self, messages: Sequence[Message]) -> None:
        for each in messages:
            await self._channel.basic_publish(
                each.body,
                exchange=each.exchange,
                routing_key=each.routing_key,
                properties=WireProperties(each.headers, message_id=""),
            )


async def _run_through(load: Load) -> float:
    queues = {place: _Queues(place) for place in load}
    with trio.fail_after(RUN_SECONDS):
        async with open_asyncio(lambda _: None):
            try:
                for each in queues.values():
                    await each.open()
                began_at = time.perf_counter()
                for place, messages in load.items():
                    await queues[place].publish(messages)
                for place, messages in load.items():
                    for _ in messages:
                        await queues[place].ended()
                return time.perf_counter() - began_at
            finally:
                for each in queues.values():
                    await each.close()


async def _one_at_a_time(
    quiet: TenantPlace, messages: Sequence[Message], busy: TenantPlace, queued: Sequence[Message]
) -> Waits:
    own, other = _Queues(quiet), _Queues(busy)
    with trio.fail_after(RUN_SECONDS):
        async with open_asyncio(lambda _: None):
            try:
                await own.open()
                await other.open()
                await other.publish(queued)
                waits = []
                for message in messages:
                    began_at = time.perf_counter()
                    await own.publish([message])
                    await own.ended()
                    waits.append(time.perf_counter() - began_at)
                    await trio.sleep(SETTLED_SECONDS)
                return Waits(waits, await other.purge())
            finally:
                await own.close()
                await other.close()
