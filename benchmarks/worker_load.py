"""Jobs for a worker: records of one kind, handed out as messages; their events are awaited."""

import secrets
import time
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage
from pymongo.collection import Collection

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.wire import WireProperties
from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.job_documents import read_job
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.crypto.keys import KeySet
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import Job
from fetcher.domain.work_message import encode_work_message, work_headers
from tests.e2e.broker import Message, address_of
from tests.e2e.cluster import Api, Cluster
from tests.servers.waiting import eventually_sync

RUN_SECONDS: Final = 300.0
DISPATCH_SECONDS: Final = 30.0
SETTLED_SECONDS: Final = 0.03
"""After a job's event: what is left of it (the mark, the acknowledgement) has been done by then."""


def make_jobs(api: Api, cluster: Cluster, jobs: Collection[Document], count: int) -> list[Message]:
    """So many jobs that were dispatched and nobody has begun, as the messages that ask for them.

    The manager makes one; the others are its record under other ids.
    """
    documents = clones(dispatched_job(api, jobs), count)
    jobs.insert_many(documents)
    return [message_for(read_job(each), cluster.keys, cluster.work_queue) for each in documents]


def dispatched_job(api: Api, jobs: Collection[Document]) -> Document:
    """The record of a job that the manager makes and sends."""
    answer = api.post_job({"empty": {"orders": ["id"]}})
    if answer.status != 202:
        raise SystemExit(f"the job was not created: {answer.body}")
    wanted = {"status": "pending", "dispatched_at": {"$ne": None}}
    made = eventually_sync(
        lambda: jobs.find_one(wanted), deadline_seconds=DISPATCH_SECONDS, what="it is dispatched"
    )
    assert made is not None
    return made


def clones(made: Document, count: int) -> list[Document]:
    return [
        {**made, "_id": uuid4().bytes, "request_hash": secrets.token_hex(32)} for _ in range(count)
    ]


def message_for(job: Job, keys: KeySet, queue: str, *, tenant: str = "") -> Message:
    """As the dispatcher sends it."""
    body = encode_work_message(job)
    signed: dict[str, object] = dict(work_headers(job, tenant=tenant))
    signed |= MessageSigner(keys.internal_hmac).headers(
        tenant=tenant, body=body, exchange="", routing_key=queue, timestamp=int(time.time())
    )
    return Message(exchange="", routing_key=queue, body=body, headers=signed)


def run_through(cluster: Cluster, messages: Sequence[Message], *, in_turn: bool = False) -> float:
    """Seconds from the first message to the last job's event; blocking.

    ``in_turn``: each message waits until the job before has ended and been settled.
    """
    return trio.run(_run_through, cluster, messages, in_turn)


async def _run_through(cluster: Cluster, messages: Sequence[Message], in_turn: bool) -> float:
    told, ended = trio.open_memory_channel[str](len(messages))

    async def on_event(message: DeliveredMessage) -> None:
        told.send_nowait(message.routing_key or "")

    async def subscribe(channel: Channel) -> None:
        await channel.basic_consume(cluster.event_queue, on_event, no_ack=True)

    async def publish(channel: Channel, batch: Sequence[Message]) -> None:
        for message in batch:
            await channel.basic_publish(
                message.body,
                exchange=message.exchange,
                routing_key=message.routing_key,
                properties=WireProperties(message.headers, message_id=""),
            )

    async def one_ended() -> None:
        if (how := await ended.receive()) != "job.completed":
            raise SystemExit(f"a job of the benchmark ended with {how}")

    with trio.fail_after(RUN_SECONDS):
        async with open_asyncio(lambda _: None):
            connection = BrokerConnection(address_of(cluster.amqp_url), name="bench")
            try:
                channel = await connection.open_channel(confirms=False)
                await run_asyncio(subscribe, channel)
                started_at = time.perf_counter()
                if in_turn:
                    for message in messages:
                        await run_asyncio(publish, channel, [message])
                        await one_ended()
                        await trio.sleep(SETTLED_SECONDS)
                else:
                    await run_asyncio(publish, channel, messages)
                    for _ in messages:
                        await one_ended()
                return time.perf_counter() - started_at
            finally:
                await connection.aclose()
