"""Delete and assign a connection, list those without a product: spec rest-api 8.3, 8.4, 8.6."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId, new_connection_id
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import (
    CONNECTIONS,
    PRODUCT,
    START,
    Answered,
    Api,
    a_body,
    a_connection,
    a_job,
    an_api,
)

ID = new_connection_id()


async def an_api_with_one(**changed: Any) -> Api:
    api = an_api()
    await api.records.connections.insert(a_connection(id=ID, **changed))
    return api


async def delete(api: Api, connection_id: object = ID) -> Answered:
    return await api.call("DELETE", f"{CONNECTIONS}/{connection_id}")


# --- delete ------------------------------------------------------------------------------------


async def test_deleted_one_is_gone_for_every_operation() -> None:
    api = await an_api_with_one()
    answered = await delete(api)
    assert (answered.status, answered.raw) == (204, b"")
    one = f"{CONNECTIONS}/{ID}"
    for again in (
        await delete(api),
        await api.get(one),
        await api.call("PATCH", one, {"port": 1}),
        await api.call("POST", f"{one}/assign", headers=PRODUCT),
        await api.call("POST", f"{one}/test"),
        await api.get(f"{one}/schema"),
    ):
        assert again.problem == (404, "FET-1001", "Entity Not Found")
    assert (await api.get(CONNECTIONS)).json["total"] == 0


async def test_answer_to_delete_has_no_headers_of_a_body() -> None:
    api = await an_api_with_one()
    talk, body = await answer_of(api.app, a_scope("DELETE", f"{CONNECTIONS}/{ID}".encode()))
    assert (talk.status, body) == (204, b"")
    assert not {b"content-type", b"content-length"}.intersection(n for n, _ in talk.headers)


async def test_record_stays_marked_and_its_name_is_free_again() -> None:
    api = await an_api_with_one()
    await delete(api)
    state = api.records.connections._state  # type: ignore[attr-defined] # the memory store's own state
    stored: Connection = state.connections[ID]
    assert stored.deleted_at == stored.updated_at
    assert stored.updated_at > START
    assert (await api.create(a_body(configName="sales_db"))).status == 201


async def test_unknown_one_is_not_found() -> None:
    assert (await delete(an_api())).problem == (404, "FET-1001", "Entity Not Found")


class Vanishing:
    """Connections that somebody else deletes right after they were first read."""

    def __init__(self, connections: Any) -> None:
        self._connections = connections

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connections, name)

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        found: Connection | None = await self._connections.get(connection_id)
        await self._connections.delete(connection_id, at=START)
        return found


@pytest.mark.parametrize(("method", "place"), [("DELETE", ""), ("POST", "/assign")])
async def test_one_that_vanishes_in_between_is_not_found(method: str, place: str) -> None:
    """Improved row for assign: the reference answers 409."""
    api = await an_api_with_one(product_name="")
    vanishing = an_api(connections=Vanishing(api.records.connections))
    answered = await vanishing.call(method, f"{CONNECTIONS}/{ID}{place}", headers=PRODUCT)
    assert answered.problem == (404, "FET-1001", "Entity Not Found")


# --- assign ------------------------------------------------------------------------------------


async def assign(api: Api, product: str | None = "Acme-Reports") -> Answered:
    headers = {} if product is None else {"X-Product-Name": product}
    return await api.call("POST", f"{CONNECTIONS}/{ID}/assign", headers=headers)


async def test_unassigned_one_gets_its_product() -> None:
    api = await an_api_with_one(product_name="")
    await api.records.jobs.insert(a_job())
    before = await api.get(f"{CONNECTIONS}/{ID}")
    answered = await assign(api)
    assert answered.status == 200
    assert answered.json["productName"] == "acme-reports"
    assert answered.json["updatedAt"] > before.json["updatedAt"]
    same = {"productName", "updatedAt"}
    assert {k: v for k, v in answered.json.items() if k not in same} == {
        k: v for k, v in before.json.items() if k not in same
    }
    assert (await api.get(f"{CONNECTIONS}/{ID}")).json == answered.json


@pytest.mark.parametrize("product", ["acme-reports", "other"])
async def test_assigned_one_is_a_conflict_also_with_its_own_product(product: str) -> None:
    api = await an_api_with_one(product_name="acme-reports")
    answered = await assign(api, product)
    assert answered.problem == (409, "FET-1015", "Connection Already Assigned")
    assert (await api.get(f"{CONNECTIONS}/{ID}")).json["productName"] == "acme-reports"


async def test_unknown_id_and_bad_header_in_their_order() -> None:
    assert (await assign(an_api())).problem == (404, "FET-1001", "Entity Not Found")
    for product in (None, "  ", "bill@ing!", "a" * 101):
        answered = await assign(an_api(), product)
        assert answered.problem == (400, "FET-0403", "Invalid header")
    answered = await an_api().call("POST", f"{CONNECTIONS}/not-a-uuid/assign")
    assert answered.problem == (400, "FET-0404", "Invalid Path Parameter")


async def test_body_of_assign_is_not_looked_at() -> None:
    api = await an_api_with_one(product_name="")
    answered = await api.call("POST", f"{CONNECTIONS}/{ID}/assign", data=b"{bad", headers=PRODUCT)
    assert answered.status == 200


# --- unassigned --------------------------------------------------------------------------------


async def unassigned(query: str = "", headers: dict[str, str] | None = None) -> Answered:
    """Of five: three without a product, a day apart, one with a product and one deleted."""
    api = an_api()
    for number in range(5):
        created_at: datetime = START - timedelta(days=100 - number)
        connection = a_connection(
            config_name=f"db_{number}",
            product_name="acme" if number == 3 else "",
            created_at=created_at,
        )
        await api.records.connections.insert(connection)
        if number == 4:
            await api.records.connections.delete(connection.id, at=START)
    return await api.get(f"{CONNECTIONS}/unassigned{query}", headers)


def names(answered: Answered) -> list[str]:
    return [item["configName"] for item in answered.json["items"]]


async def test_those_without_a_product_are_listed_however_old() -> None:
    answered = await unassigned()
    assert names(answered) == ["db_2", "db_1", "db_0"]
    assert {k: v for k, v in answered.json.items() if k != "items"} == {
        "page": 1,
        "limit": 10,
        "total": 3,
    }


@pytest.mark.parametrize(
    ("query", "found", "total"),
    [
        ("?limit=2&page=2", ["db_0"], 3),
        ("?sortOrder=asc", ["db_0", "db_1", "db_2"], 3),
        ("?endDate=2025-12-06", ["db_1", "db_0"], 2),
        ("?type=ORACLE&host=x&databaseName=x&metadata.a=b&foo=1", ["db_2", "db_1", "db_0"], 3),
    ],
)
async def test_page_order_and_dates_count_and_nothing_else(
    query: str, found: list[str], total: int
) -> None:
    answered = await unassigned(query)
    assert (names(answered), answered.json["total"]) == (found, total)


async def test_product_header_is_not_looked_at() -> None:
    assert (await unassigned(headers={"X-Product-Name": "bill@ing!"})).json["total"] == 3


@pytest.mark.parametrize(
    ("query", "code"), [("?limit=101", "FET-0406"), ("?metadata.$where=1", "FET-0405")]
)
async def test_parameters_are_judged_as_those_of_the_list(query: str, code: str) -> None:
    answered = await unassigned(query)
    assert (answered.status, answered.json["code"]) == (400, code)
