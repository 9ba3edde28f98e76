"""``python -m benchmarks.worker_peer``: a job's server calls and nothing else, on plain asyncio.

Reads one JSON object from its standard input (see :class:`Order`), says ``ready`` and takes
messages until the input ends. For each: claim the record, put an object, settle the record, publish
an event with a confirm, clear its mark, acknowledge. At its end it prints each step's
``[wall, CPU of this process]`` in seconds for each call.
"""

import asyncio
import json
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import aioboto3
import aiormq
from aiormq.abc import DeliveredMessage
from botocore.config import Config
from bson import Binary
from pymongo import AsyncMongoClient

T = TypeVar("T")

SEALED_BYTES: Final = 60
EVENT_BYTES: Final = 900
CHANNELS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    amqp_url: str
    mongo_uri: str
    mongo_name: str
    queue: str
    exchange: str
    s3_endpoint: str
    s3_access_key: str
    s3_secret_key: str
    bucket: str
    places: int


class Peer:
    def __init__(self, order: Order, jobs: Any, s3: Any, connection: aiormq.Connection) -> None:
        self._order = order
        self._jobs = jobs
        self._s3 = s3
        self._connection = connection
        self._idle: asyncio.Queue[Any] = asyncio.Queue()
        self.calls: dict[str, list[tuple[float, float]]] = defaultdict(list)

    async def start(self) -> None:
        for _ in range(CHANNELS):
            self._idle.put_nowait(await self._connection.channel(publisher_confirms=True))
        consuming = await self._connection.channel(publisher_confirms=False)
        await consuming.basic_qos(prefetch_count=self._order.places)
        await consuming.basic_consume(self._order.queue, self._work)

    async def _work(self, message: DeliveredMessage) -> None:
        job_id = UUID(json.loads(message.body)["jobId"])
        own, token = Binary(job_id.bytes, 0), Binary(secrets.token_bytes(16), 0)
        now = datetime.now(UTC)
        claimed = await self._timed(
            "claim",
            self._jobs.find_one_and_update(
                {"_id": own, "status": "pending"},
                {
                    "$set": {
                        "status": "processing",
                        "lease_token": token,
                        "lease_until": now + timedelta(seconds=60),
                        "attempt": 1,
                    }
                },
            ),
        )
        if claimed is None:
            # acknowledged too late by a peer before this one, and delivered again
            await message.channel.basic_ack(message.delivery_tag or 0)
            return
        put = self._s3.put_object(
            Bucket=self._order.bucket, Key=f"{job_id}.json", Body=bytes(SEALED_BYTES)
        )
        await self._timed("put", put)
        mark = {
            "status": "completed",
            "dedup_active": False,
            "completed_at": now,
            "metadata.terminalEventPending": True,
            "metadata.terminalEventPayload": "x" * EVENT_BYTES,
        }
        settle = self._jobs.update_one({"_id": own, "lease_token": token}, {"$set": mark})
        await self._timed("settle", settle)
        await self._timed("publish", self._publish())
        cleared = {"metadata.terminalEventPending": "", "metadata.terminalEventPayload": ""}
        await self._timed("clear_event", self._jobs.update_one({"_id": own}, {"$unset": cleared}))
        await self._timed("acknowledge", message.channel.basic_ack(message.delivery_tag or 0))

    async def _publish(self) -> None:
        channel = await self._idle.get()
        await channel.basic_publish(
            b"x" * EVENT_BYTES,
            exchange=self._order.exchange,
            routing_key="job.completed",
            mandatory=True,
            properties=aiormq.spec.Basic.Properties(
                message_id=secrets.token_hex(16), delivery_mode=2
            ),
        )
        self._idle.put_nowait(channel)

    async def _timed(self, step: str, call: Awaitable[T]) -> T:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = await call
        self.calls[step].append((time.perf_counter() - wall, time.process_time() - cpu))
        return answer


async def main(order: Order) -> None:
    config = Config(
        s3={"addressing_style": "path"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    client = aioboto3.Session().client(
        "s3",
        endpoint_url=order.s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id=order.s3_access_key,
        aws_secret_access_key=order.s3_secret_key,
        config=config,
    )
    mongo: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(order.mongo_uri)
    connection = await aiormq.connect(order.amqp_url)
    async with mongo, client as s3:
        peer = Peer(order, mongo[order.mongo_name]["job"], s3, connection)
        await peer.start()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await connection.close()
    print(json.dumps(peer.calls), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Order(**json.loads(sys.stdin.readline()))))
