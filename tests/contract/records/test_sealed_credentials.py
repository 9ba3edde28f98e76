"""SealedCredentials: what is sealed in connections, sealed anew beside everybody else's writes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import trio

from fetcher.domain.connections import Connection, ConnectionName, TlsSettings, UpdateAnswer
from fetcher.domain.ids import new_connection_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_connection, ago

CREATED = ago(500)
LATER = CREATED + timedelta(seconds=100)
TLS = TlsSettings(mode="verify-full", ca="CA", cert="CERT", key="fetcher-encrypted:1:b2xk")


async def stored(store: RecordStore, **changes: Any) -> Connection:
    connection = a_connection(
        **{
            "created_at": CREATED,
            "updated_at": CREATED,
            "password_encrypted": "b2xk",
            "encryption_key_version": "1",
        }
        | changes
    )
    await store.connections.insert(connection)
    return connection


def resealed(connection: Connection) -> Connection:
    tls = connection.tls
    if tls is not None and tls.key:
        tls = replace(tls, key="fetcher-encrypted:2:bmV3")
    return replace(connection, password_encrypted="bmV3", encryption_key_version="2", tls=tls)


async def test_names_are_those_of_live_connections(store: RecordStore) -> None:
    first, gone, second = [await stored(store, config_name=f"{n}_db") for n in ("b", "c", "a")]
    assert await store.connections.delete(gone.id, at=LATER)
    names = await store.credentials.list_names()
    expected = [ConnectionName(id=c.id, config_name=c.config_name) for c in (first, second)]
    assert sorted(names, key=lambda each: each.config_name) == expected[::-1]
    assert list(names) == sorted(names, key=lambda each: each.id or new_connection_id())


@pytest.mark.parametrize("tls", [None, TLS, replace(TLS, key=""), TlsSettings(mode="require")])
async def test_only_what_is_sealed_is_written(store: RecordStore, tls: TlsSettings | None) -> None:
    before = await stored(store, tls=tls, schema="s", metadata={"a": {"b": [1, None]}})
    after = resealed(before)
    written = replace(after, host="other.test", config_name="other_db", metadata={}, schema=None)
    assert await store.credentials.reseal(written, before=before) is UpdateAnswer.WRITTEN
    assert await store.connections.get(before.id) == after


async def test_a_password_that_is_not_there_is_moved_to_the_version(store: RecordStore) -> None:
    before = await stored(store, password_encrypted="")
    after = replace(before, encryption_key_version="2")
    assert await store.credentials.reseal(after, before=before) is UpdateAnswer.WRITTEN
    assert await store.connections.get(before.id) == after


@pytest.mark.parametrize(
    "seen",
    [
        {"updated_at": CREATED - timedelta(milliseconds=1)},
        {"password_encrypted": "b3RoZXI="},
        {"password_encrypted": ""},
        {"encryption_key_version": "0"},
        {"encryption_key_version": ""},
        {"tls": None},
        {"tls": replace(TLS, key="")},
        {"tls": replace(TLS, key="fetcher-encrypted:1:b3RoZXI=")},
    ],
)
async def test_whoever_wrote_meanwhile_wins(store: RecordStore, seen: dict[str, Any]) -> None:
    """Against a rotation, and a rotation against a change that was read before it."""
    before = await stored(store, tls=TLS)
    stale = replace(before, **seen)
    assert await store.credentials.reseal(resealed(stale), before=stale) is UpdateAnswer.CHANGED
    changed = replace(stale, host="h2", updated_at=LATER)
    assert await store.connections.update(changed, before=stale) is UpdateAnswer.CHANGED
    assert await store.connections.get(before.id) == before


async def test_a_change_that_was_read_before_a_rotation_brings_no_old_seal_back(
    store: RecordStore,
) -> None:
    before = await stored(store, tls=TLS)
    after = resealed(before)
    assert await store.credentials.reseal(after, before=before) is UpdateAnswer.WRITTEN
    changed = replace(before, host="h2", updated_at=LATER)
    assert await store.connections.update(changed, before=before) is UpdateAnswer.CHANGED
    changed = replace(after, host="h2", updated_at=LATER)
    assert await store.connections.update(changed, before=after) is UpdateAnswer.WRITTEN
    assert await store.connections.get(before.id) == changed


async def test_a_deleted_or_unknown_connection_is_not_sealed_anew(store: RecordStore) -> None:
    before = await stored(store)
    assert await store.connections.delete(before.id, at=LATER)
    for gone in (before, a_connection()):
        assert await store.credentials.reseal(resealed(gone), before=gone) is UpdateAnswer.GONE
    assert await store.connections.get(before.id) is None


async def test_of_concurrent_writers_one_wins(store: RecordStore) -> None:
    before = await stored(store, tls=TLS)
    answers: list[UpdateAnswer] = []

    async def reseal(number: int) -> None:
        after = replace(resealed(before), password_encrypted=f"bmV3{number:04}")
        answers.append(await store.credentials.reseal(after, before=before))

    async def change() -> None:
        changed = replace(before, host="h2", updated_at=LATER)
        answers.append(await store.connections.update(changed, before=before))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change)
        for number in range(4):
            nursery.start_soon(reseal, number)
    assert answers.count(UpdateAnswer.WRITTEN) == 1
    assert answers.count(UpdateAnswer.CHANGED) == 4
