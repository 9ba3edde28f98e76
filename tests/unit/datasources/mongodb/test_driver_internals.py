"""What we use of pymongo without its promise: this fails first when a new one has no more of it."""

import inspect
import ssl

import pymongo
import pytest
import trio
from pymongo.synchronous import pool

from fetcher.datasources.mongodb import driver_internals
from fetcher.datasources.mongodb.driver_internals import (
    KnownPools,
    ask_for,
    named_socket,
    start,
    tls_context,
)
from tests.servers.fake_mongo import batch, fake_mongo


def require(owner: object, name: str) -> None:
    if not hasattr(owner, name):
        where = driver_internals.__name__
        pytest.fail(f"pymongo {pymongo.version} has no {name!r} on {owner!r}: see {where}")


def test_pymongo_still_has_what_we_use() -> None:
    require(pool, "Pool")
    require(pool.Pool, "connect")
    require(pymongo.MongoClient, "_get_topology")
    require(ssl.SSLSocket, "_create")
    pools = KnownPools()
    with pymongo.MongoClient[dict[str, object]](
        "127.0.0.1", 1, connect=False, directConnection=True, tls=True, **pools.options
    ) as client:
        require(client.options, "pool_options")
        require(client.options.pool_options, "_ssl_context")
        assert isinstance(tls_context(client), ssl.SSLContext)
        start(client)
        made = list(pools._pools)
        if not made:
            pytest.fail(f"pymongo {pymongo.version} takes no '_pool_class'")
        require(made[0], "active_contexts")
        require(pool, "_CancellationContext")
        require(vars(pool)["_CancellationContext"], "cancel")
        pools.interrupt()


def test_a_client_without_tls_has_no_context() -> None:
    with pymongo.MongoClient[dict[str, object]](connect=False) as client:
        assert tls_context(client) is None


def test_a_socket_proves_the_name_it_was_made_for() -> None:
    """``wrap_socket`` hands the class its arguments by these names."""
    parameters = inspect.signature(ssl.SSLSocket._create).parameters  # type: ignore[attr-defined]
    assert "server_hostname" in parameters
    assert issubclass(named_socket("db.example"), ssl.SSLSocket)


async def test_a_cursor_asks_for_as_many_documents_as_it_was_told_last() -> None:
    async with fake_mongo(
        find=lambda _: batch({"_id": 1}, cursor=7),
        aggregate=lambda _: batch(cursor=8),
        getMore=lambda command: batch({"_id": 2}, cursor=command["getMore"] - 7, first=False),
    ) as server:

        def read() -> None:
            with pymongo.MongoClient[dict[str, object]](
                "127.0.0.1", server.port, directConnection=True
            ) as client:
                cursor = client["db"]["t"].find_raw_batches({}, batch_size=100)
                next(cursor)
                ask_for(cursor, 31)
                next(cursor)
                sample = client["db"]["t"].aggregate_raw_batches([], batchSize=2)
                next(sample)
                ask_for(sample, 64)
                next(sample)

        await trio.to_thread.run_sync(read)
    asked = [each["batchSize"] for each in server.commands if "batchSize" in each]
    # the first answer to an aggregation holds nothing
    assert asked == [100, 31, 2, 64]
