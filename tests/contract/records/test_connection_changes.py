"""ConnectionRecords: changed, assigned, deleted (spec rest-api 7.6, 8.3, 8.4, 8.6, 15)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import trio

from fetcher.domain.connections import (
    Connection,
    ConnectionQuery,
    SourceType,
    TlsSettings,
    UpdateAnswer,
)
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import new_connection_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_connection, ago, now

CREATED = ago(500)
LATER = CREATED + timedelta(seconds=100)


async def stored(store: RecordStore, **changes: Any) -> Connection:
    connection = a_connection(**{"created_at": CREATED, "updated_at": CREATED} | changes)
    await store.connections.insert(connection)
    return connection


async def update(store: RecordStore, before: Connection, **changes: Any) -> UpdateAnswer:
    after = replace(before, **{"updated_at": LATER} | changes)
    return await store.connections.update(after, before=before)


EVERYTHING: dict[str, Any] = {
    "config_name": "renamed_db",
    "type": SourceType.ORACLE,
    "host": "other.example.com",
    "port": 1521,
    "database_name": "XE",
    "schema": "APP",
    "username": "scott",
    "password_encrypted": "b3RoZXI=",
    "encryption_key_version": "2",
    "tls": TlsSettings(mode="verify-ca", ca="CA", cert="CERT", key="KEY"),
    "metadata": {"serviceName": "XEPDB1", "n": Decimal("1.10"), "a.b": {"$c": None}},
}


async def test_update_writes_every_field_that_may_change(store: RecordStore) -> None:
    before = await stored(store, product_name="reporting")
    assert await update(store, before, **EVERYTHING) is UpdateAnswer.WRITTEN
    expected = replace(before, updated_at=LATER, **EVERYTHING)
    assert await store.connections.get(before.id) == expected
    assert await store.connections.find_by_config_names(["renamed_db"]) == [expected]
    assert await store.connections.find_by_config_names([before.config_name]) == []


async def test_update_can_take_away_what_is_optional(store: RecordStore) -> None:
    before = await stored(store, **EVERYTHING)
    assert await update(store, before, schema=None, tls=None, metadata={}) is UpdateAnswer.WRITTEN
    after = await store.connections.get(before.id)
    assert after == replace(before, updated_at=LATER, schema=None, tls=None, metadata={})


async def test_update_keeps_product_creation_and_life(store: RecordStore) -> None:
    before = await stored(store, product_name="reporting")
    answer = await update(
        store, before, product_name="other", created_at=LATER, deleted_at=LATER, host="h2"
    )
    assert answer is UpdateAnswer.WRITTEN
    assert await store.connections.get(before.id) == replace(before, host="h2", updated_at=LATER)
    query = ConnectionQuery(product_name="reporting")
    assert (await store.connections.list_page(query)).total == 1


async def test_update_after_somebody_elses_changes_nothing(store: RecordStore) -> None:
    before = await stored(store)
    assert await update(store, before, host="first") is UpdateAnswer.WRITTEN
    assert await update(store, before, host="second") is UpdateAnswer.CHANGED
    found = await store.connections.get(before.id)
    assert found == replace(before, host="first", updated_at=LATER)
    much_later = LATER + timedelta(seconds=1)
    assert found is not None
    assert await update(store, found, host="2", updated_at=much_later) is UpdateAnswer.WRITTEN


async def test_update_of_a_deleted_or_unknown_connection_finds_none(store: RecordStore) -> None:
    before = await stored(store)
    assert await store.connections.delete(before.id, at=CREATED)
    assert await update(store, before, host="h2") is UpdateAnswer.GONE
    assert await update(store, a_connection()) is UpdateAnswer.GONE
    assert await store.connections.get(before.id) is None
    assert (await store.connections.list_page(ConnectionQuery())).total == 0


async def test_update_to_a_taken_name_is_refused(store: RecordStore) -> None:
    taken = await stored(store, config_name="taken_db")
    before = await stored(store, config_name="own_db")
    with pytest.raises(DuplicateConfigName):
        await update(store, before, config_name="taken_db")
    assert await store.connections.get(before.id) == before
    assert await store.connections.find_by_config_names(["taken_db"]) == [taken]
    assert await update(store, before, config_name="own_db", host="h2") is UpdateAnswer.WRITTEN


async def test_name_that_was_deleted_or_given_up_is_free(store: RecordStore) -> None:
    gone = await stored(store, config_name="gone_db")
    await store.connections.delete(gone.id, at=LATER)
    before = await stored(store, config_name="own_db")
    assert await update(store, before, config_name="gone_db") is UpdateAnswer.WRITTEN
    assert (await stored(store, config_name="own_db")).config_name == "own_db"


async def test_of_concurrent_updates_one_wins(store: RecordStore) -> None:
    before = await stored(store)
    answers: dict[str, UpdateAnswer] = {}

    async def change(host: str) -> None:
        answers[host] = await update(store, before, host=host)

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(change, f"h{number}")
    winners = [host for host, answer in answers.items() if answer is UpdateAnswer.WRITTEN]
    assert len(winners) == 1
    assert list(answers.values()).count(UpdateAnswer.CHANGED) == 5
    found = await store.connections.get(before.id)
    assert found == replace(before, host=winners[0], updated_at=LATER)


async def test_what_the_writer_changes_afterwards_is_not_stored(store: RecordStore) -> None:
    before = await stored(store)
    metadata: dict[str, Any] = {"tags": ["a"]}
    await update(store, before, metadata=metadata)
    metadata["tags"].append("b")
    found = await store.connections.get(before.id)
    assert found is not None
    assert found.metadata == {"tags": ["a"]}


# --- products ---------------------------------------------------------------------------------


async def test_assign_gives_the_product_once(store: RecordStore) -> None:
    before = await stored(store)
    assign = store.connections.assign
    expected = replace(before, product_name="reporting", updated_at=LATER)
    assert await assign(before.id, product_name="reporting", at=LATER) == expected
    assert await store.connections.get(before.id) == expected
    for name in ("other", "reporting"):
        again = await assign(before.id, product_name=name, at=LATER + timedelta(seconds=1))
        assert again is None
    assert await store.connections.get(before.id) == expected
    query = ConnectionQuery(product_name="REPORTING")
    assert (await store.connections.list_page(query)).items == (expected,)


async def test_assign_of_a_deleted_or_unknown_connection_finds_none(store: RecordStore) -> None:
    before = await stored(store)
    await store.connections.delete(before.id, at=LATER)
    assert await store.connections.assign(before.id, product_name="p", at=LATER) is None
    assert await store.connections.assign(new_connection_id(), product_name="p", at=LATER) is None


async def test_unassigned_are_those_without_a_product(store: RecordStore) -> None:
    ours = [await stored(store, created_at=CREATED + timedelta(seconds=n)) for n in range(3)]
    await stored(store, product_name="reporting")
    deleted = await stored(store)
    await store.connections.delete(deleted.id, at=LATER)
    page = await store.connections.list_page(ConnectionQuery(unassigned=True, limit=2))
    assert (page.items, page.total) == ((ours[2], ours[1]), 3)
    await store.connections.assign(ours[2].id, product_name="p", at=LATER)
    page = await store.connections.list_page(ConnectionQuery(unassigned=True))
    assert (page.items, page.total) == ((ours[1], ours[0]), 2)
    since = CREATED + timedelta(seconds=1)
    page = await store.connections.list_page(ConnectionQuery(unassigned=True, created_from=since))
    assert page.items == (ours[1],)
    page = await store.connections.list_page(ConnectionQuery(unassigned=True, product_name="p"))
    assert (page.items, page.total) == ((), 0)


# --- deletion ---------------------------------------------------------------------------------


async def test_deleted_connection_is_invisible_and_its_name_free(store: RecordStore) -> None:
    before = await stored(store, config_name="sales_db")
    assert await store.connections.delete(before.id, at=LATER)
    assert await store.connections.get(before.id) is None
    assert await store.connections.find_by_config_names(["sales_db"]) == []
    assert (await store.connections.list_page(ConnectionQuery())).total == 0
    again = await stored(store, config_name="sales_db")
    assert await store.connections.find_by_config_names(["sales_db"]) == [again]


async def test_second_deletion_finds_none(store: RecordStore) -> None:
    before = await stored(store)
    assert await store.connections.delete(before.id, at=LATER)
    assert not await store.connections.delete(before.id, at=LATER)
    assert not await store.connections.delete(new_connection_id(), at=LATER)


@pytest.mark.parametrize("kind", ["assign", "delete"])
async def test_of_concurrent_calls_one_wins(store: RecordStore, kind: str) -> None:
    before = await stored(store)
    answers: list[bool] = []

    async def assign(number: int) -> bool:
        at = now()
        found = await store.connections.assign(before.id, product_name=f"p{number}", at=at)
        return found is not None

    async def delete(number: int) -> bool:
        return await store.connections.delete(before.id, at=now() + timedelta(seconds=number))

    calls: dict[str, Callable[[int], Awaitable[bool]]] = {"assign": assign, "delete": delete}

    async def call(number: int) -> None:
        answers.append(await calls[kind](number))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(call, number)
    assert sorted(answers) == [False] * 5 + [True]


async def test_update_and_deletion_agree(store: RecordStore) -> None:
    """Whoever wins: the connection is gone in the end, and no update brings it back."""
    for _ in range(5):
        before = await stored(store)
        answers: dict[str, object] = {}

        async def change(before: Connection = before, answers: dict[str, object] = answers) -> None:
            answers["update"] = await update(store, before, host="h2")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            answers["delete"] = await store.connections.delete(before.id, at=LATER)
        assert answers["delete"] is True
        assert answers["update"] in (UpdateAnswer.WRITTEN, UpdateAnswer.GONE)
        assert await store.connections.get(before.id) is None
