"""ConnectionRecords (spec rest-api 8.2, 12.2, 15)."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import trio

from fetcher.domain.connections import Connection, ConnectionQuery, SourceType, TlsSettings
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import new_connection_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_connection, ago, now


async def stored(store: RecordStore, **changes: Any) -> Connection:
    connection = a_connection(**changes)
    await store.connections.insert(connection)
    return connection


async def names(store: RecordStore, **query: Any) -> list[str]:
    page = await store.connections.list_page(ConnectionQuery(ascending=True, limit=100, **query))
    assert page.total == len(page.items)
    return [connection.config_name for connection in page.items]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"type": SourceType.SQLITE, "host": "", "port": 0, "username": ""},
        {"schema": "sales", "product_name": " Reporting "},
        {"tls": TlsSettings(mode="verify-full", ca="CA", cert="CERT", key="KEY")},
        {"tls": TlsSettings(mode="require")},
        {"metadata": {"serviceName": "X", "n": 2**64, "d": Decimal("1.10"), "a": [None, True]}},
        {"metadata": {"$where": {"a.b": "c"}, "Größe": "表", "": ""}},
        {"database_name": "Datenbank 表.sqlite", "username": "o'brien\\\"", "port": 65535},
    ],
)
async def test_inserted_connection_reads_back_as_it_was(
    store: RecordStore, changes: dict[str, Any]
) -> None:
    connection = await stored(store, **changes)
    assert await store.connections.get(connection.id) == connection
    found = await store.connections.find_by_config_names([connection.config_name])
    assert found == [connection]


async def test_unknown_connection_is_none(store: RecordStore) -> None:
    assert await store.connections.get(new_connection_id()) is None


async def test_taken_config_name_is_refused(store: RecordStore) -> None:
    first = await stored(store, config_name="sales_db")
    with pytest.raises(DuplicateConfigName):
        await store.connections.insert(a_connection(config_name="sales_db", product_name="other"))
    assert await store.connections.find_by_config_names(["sales_db"]) == [first]


async def test_config_names_differ_by_case(store: RecordStore) -> None:
    lower = await stored(store, config_name="sales_db")
    await stored(store, config_name="SALES_DB")
    assert await store.connections.find_by_config_names(["sales_db"]) == [lower]


async def test_of_concurrent_inserts_of_one_name_one_wins(store: RecordStore) -> None:
    outcomes: list[bool] = []

    async def insert() -> None:
        try:
            await store.connections.insert(a_connection(config_name="sales_db"))
            outcomes.append(True)
        except DuplicateConfigName:
            outcomes.append(False)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(insert)
    assert sorted(outcomes) == [False] * 5 + [True]
    assert len(await names(store)) == 1


async def test_deleted_connection_is_invisible_and_frees_its_name(store: RecordStore) -> None:
    deleted = await stored(store, config_name="sales_db", deleted_at=now())
    assert await store.connections.get(deleted.id) is None
    assert await store.connections.find_by_config_names(["sales_db"]) == []
    assert await names(store) == []
    live = await stored(store, config_name="sales_db")
    assert await store.connections.find_by_config_names(["sales_db"]) == [live]


async def test_find_by_names_sorts_and_leaves_out_what_is_missing(store: RecordStore) -> None:
    for name in ("b_db", "a_db", "C_db", "other"):
        await stored(store, config_name=name)
    found = await store.connections.find_by_config_names(["b_db", "none", "C_db", "a_db", "b_db"])
    assert [c.config_name for c in found] == ["C_db", "a_db", "b_db"]
    assert await store.connections.find_by_config_names([]) == []


async def test_pages_neither_repeat_nor_lose_one_when_times_are_equal(store: RecordStore) -> None:
    same = now()
    made = {(await stored(store, created_at=same)).id for _ in range(7)}
    seen = []
    for page_number in (1, 2, 3, 4, 5):
        page = await store.connections.list_page(ConnectionQuery(page=page_number, limit=2))
        assert page.total == 7
        assert len(page.items) == [2, 2, 2, 1, 0][page_number - 1]
        seen += [connection.id for connection in page.items]
    assert len(seen) == 7
    assert set(seen) == made
    assert seen == sorted(seen, reverse=True)


async def test_what_stands_before_them_in_the_list_takes_their_places(store: RecordStore) -> None:
    made = [(await stored(store, created_at=ago(age))).id for age in (5, 4, 3, 2, 1)]
    queries = [ConnectionQuery(page=n, limit=2, preceding=3, ascending=True) for n in (1, 2, 3, 4)]
    pages = [await store.connections.list_page(query) for query in queries]
    # from the first of them that is on the page or behind it: whoever precedes them cuts the page
    assert [[c.id for c in page.items] for page in pages] == [
        made[:2],
        made[:2],
        made[1:3],
        made[3:],
    ]
    assert [page.total for page in pages] == [5] * 4


async def test_newest_come_first_unless_ascending(store: RecordStore) -> None:
    made = [await stored(store, created_at=ago(age)) for age in (20, 40, 30)]
    newest_first = [made[0], made[2], made[1]]
    page = await store.connections.list_page(ConnectionQuery())
    assert list(page.items) == newest_first
    page = await store.connections.list_page(ConnectionQuery(ascending=True))
    assert list(page.items) == newest_first[::-1]


async def test_empty_store_lists_nothing(store: RecordStore) -> None:
    page = await store.connections.list_page(ConnectionQuery())
    assert (page.items, page.total) == ((), 0)


async def test_product_is_compared_without_case(store: RecordStore) -> None:
    await stored(store, config_name="a_db", product_name="Reporting")
    await stored(store, config_name="b_db", product_name="REPORTING", created_at=ago(-1))
    await stored(store, config_name="c_db", product_name="Reporting2")
    await stored(store, config_name="d_db", product_name="")
    assert await names(store, product_name="reporting") == ["a_db", "b_db"]
    assert await names(store, product_name=" rePORTing ") == ["a_db", "b_db"]
    assert await names(store, product_name="report") == []
    assert await names(store, product_name="") == ["d_db"]


async def test_type_host_and_database_name_are_exact(store: RecordStore) -> None:
    await stored(store, config_name="a_db", host="h1", database_name="sales")
    await stored(store, config_name="b_db", type=SourceType.MYSQL, host="h1", database_name="Sales")
    await stored(store, config_name="c_db", type=SourceType.MYSQL, host="h2", database_name="sales")
    assert sorted(await names(store, type="MYSQL")) == ["b_db", "c_db"]
    assert sorted(await names(store, host="h1")) == ["a_db", "b_db"]
    assert sorted(await names(store, database_name="sales")) == ["a_db", "c_db"]
    assert await names(store, type="MYSQL", host="h1", database_name="Sales") == ["b_db"]
    assert await names(store, type="mysql") == []
    assert await names(store, type="NO_SUCH_TYPE") == []
    assert await names(store, host="h") == []
    assert await names(store, host="%") == []
    assert await names(store, host="' OR '1'='1") == []


async def test_window_includes_its_start_and_leaves_out_its_end(store: RecordStore) -> None:
    instant = ago(1000)
    step = timedelta(milliseconds=1)
    await stored(store, config_name="before", created_at=instant - step)
    await stored(store, config_name="at", created_at=instant)
    await stored(store, config_name="after", created_at=instant + step)
    assert await names(store, created_from=instant) == ["at", "after"]
    assert await names(store, created_until=instant) == ["before"]
    assert await names(store, created_from=instant, created_until=instant + step) == ["at"]


async def test_metadata_filters_compare_text_at_a_path(store: RecordStore) -> None:
    await stored(store, config_name="a_db", metadata={"team": "x", "place": {"city": "Köln"}})
    await stored(store, config_name="b_db", metadata={"team": "y", "place": {"city": "Köln"}})
    await stored(store, config_name="c_db", metadata={"team": 5, "place": "Köln"})
    await stored(store, config_name="d_db", metadata={})
    await stored(store, config_name="e_db", metadata={"place.city": "Köln"})
    assert await names(store, metadata={"team": "x"}) == ["a_db"]
    assert sorted(await names(store, metadata={"place.city": "Köln"})) == ["a_db", "b_db"]
    assert await names(store, metadata={"place.city": "Köln", "team": "y"}) == ["b_db"]
    assert await names(store, metadata={"team": "5"}) == []
    assert await names(store, metadata={"place": "city"}) == []
    assert await names(store, metadata={"none": ""}) == []
    assert await names(store, metadata={"team": "x", "none": "x"}) == []
    assert len(await names(store, metadata={})) == 5


async def test_total_counts_what_the_filters_match(store: RecordStore) -> None:
    for number in range(5):
        await stored(store, host="h1" if number % 2 else "h2")
    page = await store.connections.list_page(ConnectionQuery(host="h2", limit=2))
    assert (len(page.items), page.total) == (2, 3)
    assert {connection.host for connection in page.items} == {"h2"}
