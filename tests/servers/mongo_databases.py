"""MongoDB databases that live for a module: making the indexes takes the test server 0.1 s."""

import secrets
from collections.abc import Iterator

import pymongo
import pytest


@pytest.fixture(scope="module")
def mongo_database_of_module(mongo_uri: str) -> Iterator[str]:
    """The name of a database that is empty when the module begins, and dropped when it ends."""
    name = f"fetcher_t_{secrets.token_hex(6)}"
    yield name
    with pymongo.MongoClient[dict[str, object]](
        mongo_uri, serverSelectionTimeoutMS=10_000
    ) as client:
        client.drop_database(name)
