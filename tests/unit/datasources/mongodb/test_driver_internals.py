"""What we use of pymongo without its promise: this fails first when a new one has no more of it."""

import inspect
import ssl

import pymongo
import pytest
from pymongo.synchronous import pool

from fetcher.datasources.mongodb import driver_internals
from fetcher.datasources.mongodb.driver_internals import (
    KnownPools,
    named_socket,
    start,
    tls_context,
)


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
