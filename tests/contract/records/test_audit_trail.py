"""AuditTrail: entries are added, read from the newest on, and go after their time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from fetcher.domain.audit import AuditAction, AuditCursor, AuditEntry, AuditQuery
from fetcher.ports import RecordStore
from tests.contract.records.builders import ago, now


def an_entry(**changes: Any) -> AuditEntry:
    values: dict[str, Any] = {
        "id": uuid4(),
        "time": now(),
        "actor": "acme/ü",
        "action": AuditAction.JOB_CREATED,
        "target": str(uuid4()),
        "product": "Reporting",
        "request_id": "req-1",
        "outcome": "succeeded",
    }
    return AuditEntry(**values | changes)


async def appended(store: RecordStore, *entries: AuditEntry) -> list[AuditEntry]:
    """Newest first."""
    for entry in entries:
        await store.audit.append(entry)
    return sorted(entries, key=lambda entry: (entry.time, entry.id), reverse=True)


async def test_entry_is_read_as_it_was_written(store: RecordStore) -> None:
    entry = an_entry()
    await store.audit.append(entry)
    assert list((await store.audit.list_page(AuditQuery())).items) == [entry]


async def test_second_try_of_one_entry_adds_nothing(store: RecordStore) -> None:
    entry = an_entry()
    await store.audit.append(entry)
    await store.audit.append(replace(entry, outcome="FET-1001"))
    assert list((await store.audit.list_page(AuditQuery())).items) == [entry]


async def test_entries_that_come_at_once_are_all_there_and_none_twice(store: RecordStore) -> None:
    known = an_entry(time=ago(60))
    await store.audit.append(known)
    entries = [an_entry(time=ago(n)) for n in range(50)]
    async with trio.open_nursery() as nursery:
        for entry in (replace(known, outcome="FET-1001"), *entries):
            nursery.start_soon(store.audit.append, entry)
    page = await store.audit.list_page(AuditQuery(limit=100))
    assert list(page.items) == [*entries, known]


async def test_pages_neither_repeat_nor_lose_an_entry_also_within_one_moment(
    store: RecordStore,
) -> None:
    moment = now()
    entries = await appended(
        store,
        *(an_entry(time=moment) for _ in range(5)),
        *(an_entry(time=moment - timedelta(seconds=n)) for n in range(1, 4)),
    )
    found: list[AuditEntry] = []
    before = None
    for size in (3, 3, 2):
        page = await store.audit.list_page(AuditQuery(before=before, limit=3))
        assert len(page.items) == size
        found += page.items
        before = page.next
    assert (found, before) == (entries, None)


async def test_page_that_is_just_full_is_the_last_one(store: RecordStore) -> None:
    entries = await appended(store, an_entry(), an_entry(), an_entry(actor="other"))
    page = await store.audit.list_page(AuditQuery(limit=3))
    assert (list(page.items), page.next) == (entries, None)
    page = await store.audit.list_page(AuditQuery(actor="acme/ü", limit=2))
    assert (len(page.items), page.next) == (2, None)


async def test_filters_hold_on_the_next_page_too(store: RecordStore) -> None:
    wanted = await appended(store, *(an_entry(actor="x", target="t") for _ in range(3)))
    await appended(store, *(an_entry(actor="x") for _ in range(3)), an_entry(target="t"))
    query = AuditQuery(actor="x", target="t", action=AuditAction.JOB_CREATED, limit=2)
    first = await store.audit.list_page(query)
    rest = await store.audit.list_page(replace(query, before=first.next))
    assert [*first.items, *rest.items] == wanted
    assert rest.next is None


async def test_place_of_a_time_alone_is_before_all_entries_of_it(store: RecordStore) -> None:
    moment = now()
    await appended(store, an_entry(time=moment))
    older = an_entry(time=moment - timedelta(milliseconds=1))
    await store.audit.append(older)
    query = AuditQuery(before=AuditCursor(time=moment, id=UUID(int=0)))
    assert list((await store.audit.list_page(query)).items) == [older]


@pytest.mark.parametrize(
    ("name", "value"),
    [("actor", "owner/b"), ("action", AuditAction.RESULT_DOWNLOADED), ("target", "t-1")],
)
async def test_each_filter_finds_its_own(store: RecordStore, name: str, value: object) -> None:
    await appended(store, an_entry(), an_entry())
    wanted = an_entry(**{name: value})
    await store.audit.append(wanted)
    query = replace(AuditQuery(), **{name: value})  # type: ignore[arg-type] # one of three
    assert list((await store.audit.list_page(query)).items) == [wanted]


async def test_old_entries_go_the_oldest_first(store: RecordStore) -> None:
    entries = await appended(store, *(an_entry(time=ago(100 * n)) for n in range(4)))
    assert await store.audit.delete_old(older_than_seconds=50, limit=2) == 2
    assert list((await store.audit.list_page(AuditQuery())).items) == entries[:2]
    assert await store.audit.delete_old(older_than_seconds=50, limit=2) == 1
    assert await store.audit.delete_old(older_than_seconds=50, limit=2) == 0
    assert list((await store.audit.list_page(AuditQuery())).items) == entries[:1]
