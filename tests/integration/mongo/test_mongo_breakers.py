"""Breakers in MongoDB: what lies in the collection, and two processes at once."""

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import trio
from bson import Binary
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records
from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed, probed_by
from fetcher.domain.connections import Connection
from tests.contract.records.builders import a_connection, ago

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

DOWN = SourceDown(stage="auth", reason="auth")


@pytest.fixture
async def other(records: MongoRecords, mongo_uri: str, raw: Raw) -> AsyncIterator[MongoRecords]:
    """A second process on the same database: a client and a clock of its own."""
    async with open_mongo_records(mongo_uri, raw.name, allow_plaintext=True) as records_of_other:
        yield records_of_other


async def fail(records: MongoRecords, connection: Connection) -> None:
    await records.breakers.change(connection.id, failed(connection, DOWN))


async def test_a_record_says_which_connection_and_nothing_of_its_secrets(
    records: MongoRecords, raw: Raw
) -> None:
    connection = a_connection(config_name="sales_db", password_encrypted="canary")
    await fail(records, connection)
    (document,) = raw["connection_breaker"].find()
    assert document["_id"] == connection.id.bytes
    assert (document["config_name"], document["failures"]) == ("sales_db", 1)
    assert len(document["revision"]) == 8
    assert "canary" not in repr(document)
    assert connection.host not in repr(document)


async def test_two_processes_count_together_and_one_of_them_probes(
    records: MongoRecords, other: MongoRecords, raw: Raw
) -> None:
    connection = a_connection()
    async with trio.open_nursery() as nursery:
        for number in range(FAILURES_TO_OPEN):
            nursery.start_soon(fail, (records, other)[number % 2], connection)
    assert await other.breakers.count_open() == 1
    raw["connection_breaker"].update_one({}, {"$set": {"retry_at": ago(1)}})
    tokens = [secrets.token_bytes(16) for _ in range(4)]
    given: list[bytes] = []

    async def ask(store: MongoRecords, token: bytes) -> None:
        change = await store.breakers.change(connection.id, probed_by(token, connection))
        assert change.after is not None
        given.extend([token] if change.after.probe_token == token else [])

    async with trio.open_nursery() as nursery:
        for number, token in enumerate(tokens):
            nursery.start_soon(ask, (records, other)[number % 2], token)
    assert len(given) == 1
    (document,) = raw["connection_breaker"].find()
    assert document["probe_token"] == given[0]


@pytest.mark.parametrize(
    "damage", [{"version": "canary"}, {"failures": "canary"}, {"probe_token": 7}]
)
async def test_what_cannot_be_read_holds_nobody_back_and_is_written_over(
    records: MongoRecords, raw: Raw, damage: dict[str, object]
) -> None:
    connection = a_connection()
    for _ in range(FAILURES_TO_OPEN):
        await fail(records, connection)
    raw["connection_breaker"].update_one({}, {"$set": damage})
    assert await records.breakers.find([connection.id]) == {}
    change = await records.breakers.change(connection.id, failed(connection, DOWN))
    assert change.after is not None
    assert change.after.failures == 1
    assert await records.breakers.find([connection.id]) == {connection.id: change.after}


async def test_a_record_that_changes_under_the_rule_is_judged_anew(
    records: MongoRecords, raw: Raw
) -> None:
    connection = a_connection()
    await fail(records, connection)
    seen: list[int] = []

    def rule(breaker: Any, now: Any) -> Any:
        seen.append(breaker.failures)
        if len(seen) == 1:
            raw["connection_breaker"].update_one(
                {}, {"$set": {"failures": 3, "revision": Binary(b"other", 0)}}
            )
        return failed(connection, DOWN)(breaker, now + timedelta(0))

    change = await records.breakers.change(connection.id, rule)
    assert seen == [1, 3]
    assert change.after is not None
    assert change.after.failures == 4
