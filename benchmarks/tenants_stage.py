"""Servers of the benchmark's own with many tenants on them: a broker with a virtual host each, a
record store with a database each, a Redis for their events, and the Tenant Manager's double.

All of it goes away with the block, also when that is interrupted.
"""

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import boto3
import psycopg
import trio
from aiormq import Channel

from benchmarks.worker import AS_DEPLOYED, remove_bucket
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.dead_letters import (
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    DEAD_LETTER_QUEUE,
)
from fetcher.bridge import open_asyncio, run_asyncio
from tests.e2e.broker import address_of, url_at
from tests.e2e.tenancy import EVENT_QUEUE, EXCHANGE, WORK_QUEUE, TenantPlace, TenantProcesses
from tests.servers import vhosts
from tests.servers.addresses import SqlAddress, postgres_address, read_settings, s3_address
from tests.servers.own_servers import OwnServer, own_server
from tests.servers.tenant_manager import mongo_at, tenant_manager_double

DECLARE_SECONDS: Final = 120.0
DECLARED_AT_ONCE: Final = 8
SMALLEST_POOL: Final = 10
"""Of the clients that are to differ: no tenant ever has so many connections."""


@dataclass(frozen=True, slots=True)
class Stage:
    tenancy: TenantProcesses
    places: Sequence[TenantPlace]
    broker: OwnServer
    store: OwnServer
    source: SqlAddress
    """A database with a table ``orders`` that has no rows."""

    def tell(self, *, first: int | None = None, own_clients: bool = False) -> None:
        """Tell the Tenant Manager of all tenants, or of the ``first`` so many: on one address of
        the record store, or with ``own_clients`` each on one that looks different, so that none
        shares a client."""
        for number, place in enumerate(self.places[:first]):
            mongo = mongo_at(self.tenancy.mongo_uri, place.database)
            if own_clients:
                mongo["maxPoolSize"] = SMALLEST_POOL + number
            self.tenancy.tell(place, mongo=mongo)


@contextmanager
def stage(tenants: int) -> Iterator[Stage]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_server("RabbitMQ"))
        store = stack.enter_context(own_server("MongoDB"))
        redis = stack.enter_context(own_server("Redis"))
        hosts = _virtual_hosts(broker, tenants)
        source = stack.enter_context(_source())
        tenancy = TenantProcesses(
            folder=folder,
            manager_double=stack.enter_context(tenant_manager_double(folder)),
            mongo_uri=f"mongodb://127.0.0.1:{store.port}/",
            redis_url=f"redis://127.0.0.1:{redis.port}/0",
            s3=s3_address(read_settings()),
            bucket=stack.enter_context(_bucket()),
            changes={**AS_DEPLOYED, "MULTI_TENANT_MAX_TENANT_POOLS": str(max(tenants, 1))},
        )
        places = [
            TenantPlace(tenant_id=host.name, vhost=host, database=host.name) for host in hosts
        ]
        yield Stage(tenancy, places, broker, store, source)


def _virtual_hosts(broker: OwnServer, count: int) -> list[vhosts.Vhost]:
    """Their names are short: one command makes all, and its line has an end."""
    made = [
        vhosts.place_of(url_at(broker.port), name=name, user=name, password=secrets.token_hex(4))
        for name in (f"t{number:03}" for number in range(count))
    ]
    vhosts.make(broker.control_command, made)
    trio.run(_declare_all, [host.url for host in made])
    return made


async def _declare_all(urls: Sequence[str]) -> None:
    async def declare_one(url: str) -> None:
        async with limit:
            connection = BrokerConnection(address_of(url), name="bench")
            try:
                channel = await connection.open_channel(confirms=False)
                await run_asyncio(_declare, channel)
            finally:
                await connection.aclose()

    limit = trio.CapacityLimiter(DECLARED_AT_ONCE)
    with trio.fail_after(DECLARE_SECONDS):
        async with open_asyncio(lambda _: None), trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(declare_one, url)


async def _declare(channel: Channel) -> None:
    await channel.queue_declare(WORK_QUEUE, durable=True)
    await channel.exchange_declare(EXCHANGE, exchange_type="topic", durable=True)
    await channel.queue_declare(EVENT_QUEUE, durable=True)
    for key in ("job.completed", "job.failed"):
        await channel.queue_bind(EVENT_QUEUE, EXCHANGE, key)
    await channel.exchange_declare(DEAD_LETTER_EXCHANGE, exchange_type="direct", durable=True)
    await channel.queue_declare(DEAD_LETTER_QUEUE, durable=True)
    await channel.queue_bind(DEAD_LETTER_QUEUE, DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY)


@contextmanager
def _source() -> Iterator[SqlAddress]:
    server = postgres_address(read_settings())
    name = f"fetcher_bench_{secrets.token_hex(6)}"
    with psycopg.connect(server.conninfo, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'".encode())
        try:
            own = SqlAddress(
                host=server.host,
                port=server.port,
                user=server.user,
                database=name,
                password=server.password,
            )
            with psycopg.connect(own.conninfo) as database:
                database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, total numeric)")
            yield own
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def _bucket() -> Iterator[str]:
    access, name = s3_address(read_settings()), f"fetcher-bench-{secrets.token_hex(6)}"
    client = boto3.client(
        "s3",
        endpoint_url=access.endpoint,
        aws_access_key_id=access.access_key,
        aws_secret_access_key=access.secret_key,
        region_name=access.region,
    )
    try:
        client.create_bucket(Bucket=name)
        try:
            yield name
        finally:
            remove_bucket(client, name)
    finally:
        client.close()
