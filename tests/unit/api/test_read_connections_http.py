"""GET of connections: spec rest-api 17.3, with the decisions' changes."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.api.harness import CONNECTIONS, START, Api, a_connection, an_api

NIL = "00000000-0000-0000-0000-000000000000"


async def an_api_with(*names: str, product: str = "acme-reports") -> Api:
    """Connections of these names, each a minute younger than the one before."""
    api = an_api()
    for minutes, name in enumerate(names):
        created = START + timedelta(minutes=minutes)
        await api.records.connections.insert(
            a_connection(config_name=name, created_at=created, product_name=product)
        )
    return api


async def listed(api: Api, query: str = "", **headers: str) -> list[str]:
    answered = await api.get(f"{CONNECTIONS}{query}", headers)
    assert answered.status == 200, answered.raw
    return [item["configName"] for item in answered.json["items"]]


# --- one -------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["{0}", "{1}", "urn:uuid:{0}", "{2}"])
async def test_id_is_accepted_in_each_spelling(spelling: str) -> None:
    api = an_api()
    connection = a_connection()
    await api.records.connections.insert(connection)
    text = spelling.format(connection.id, connection.id.hex, str(connection.id).upper())
    answered = await api.get(f"{CONNECTIONS}/{text}")
    assert (answered.status, answered.json["id"]) == (200, str(connection.id))


@pytest.mark.parametrize(
    "unknown",
    ["0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b", NIL, "f" * 32, "ffffffff-ffff-ffff-ffff-ffffffffffff"],
)
async def test_unknown_id_is_not_found(unknown: str) -> None:
    answered = await an_api().get(f"{CONNECTIONS}/{unknown}")
    assert answered.problem == (404, "FET-1001", "Entity Not Found")
    assert answered.json["errorCode"] == "FET-1001"


@pytest.mark.parametrize(
    "text",
    [
        "not-a-uuid",
        "12345",
        "f" * 31,
        "gggggggg-0000-0000-0000-000000000000",
        "%20" + NIL,
        "(" + NIL + ")",
        "validate-schema",
    ],
)
async def test_text_that_is_no_uuid_is_an_invalid_path_parameter(text: str) -> None:
    answered = await an_api().get(f"{CONNECTIONS}/{text}")
    assert answered.problem == (400, "FET-0404", "Invalid Path Parameter")


async def test_braces_around_an_id_are_accepted_and_must_be_braces() -> None:
    answered = await an_api().get(f"{CONNECTIONS}/{{{NIL}}}")
    # The test client writes braces percent-encoded, as most clients do: nothing is decoded.
    assert answered.problem == (400, "FET-0404", "Invalid Path Parameter")


async def test_trailing_slash_is_accepted_and_case_is_not_folded() -> None:
    api = await an_api_with("one")
    assert await listed(api, "/") == ["one"]
    assert (await api.get(CONNECTIONS.upper())).status == 404


# --- pages -----------------------------------------------------------------------------------


async def test_empty_list_has_no_items_and_total_0() -> None:
    answered = await an_api().get(CONNECTIONS)
    assert answered.json == {"items": [], "page": 1, "limit": 10, "total": 0}


async def test_pages_neither_repeat_nor_lose_one() -> None:
    api = await an_api_with("a_1", "b_2", "c_3", "d_4", "e_5")
    pages = [await listed(api, f"?limit=2&page={page}") for page in (1, 2, 3, 4)]
    assert pages == [["e_5", "d_4"], ["c_3", "b_2"], ["a_1"], []]
    answered = await api.get(f"{CONNECTIONS}?limit=2&page=3")
    assert (answered.json["total"], answered.json["page"], answered.json["limit"]) == (5, 3, 2)


async def test_sort_order_turns_the_list_around() -> None:
    api = await an_api_with("old", "new")
    assert await listed(api, "?sortOrder=ASC") == ["old", "new"]
    assert await listed(api, "?sortOrder=desc") == ["new", "old"]


async def test_product_header_filters_and_an_empty_one_does_not() -> None:
    api = await an_api_with("mine")
    other = a_connection(config_name="theirs", product_name="other")
    await api.records.connections.insert(other)
    assert await listed(api, **{"X-Product-Name": "Acme-Reports"}) == ["mine"]
    assert await listed(api, **{"X-Product-Name": "nobody"}) == []
    assert sorted(await listed(api, **{"X-Product-Name": ""})) == ["mine", "theirs"]


@pytest.mark.parametrize("product", ["  ", "bill@ing", "p" * 101])
async def test_bad_product_header_is_refused_before_the_query(product: str) -> None:
    answered = await an_api().get(f"{CONNECTIONS}?limit=x", {"X-Product-Name": product})
    assert answered.problem == (400, "FET-0403", "Invalid header")


async def test_filters_narrow_the_list() -> None:
    api = await an_api_with("plain")
    special = a_connection(
        config_name="special", host="pg9", database_name="books", metadata={"team": {"name": "bi"}}
    )
    await api.records.connections.insert(special)
    for query in ("?host=pg9", "?databaseName=books", "?metadata.team.name=bi"):
        assert await listed(api, query) == ["special"]
    assert await listed(api, "?metadata.team.name=other") == []
    assert len(await listed(api, "?type=postgresql")) == 2
    assert await listed(api, "?type=unknown") == []


@pytest.mark.parametrize(
    ("query", "code", "title"),
    [
        ("limit=abc", "FET-0405", "Invalid Query Parameter"),
        ("limit=0", "FET-0405", "Invalid Query Parameter"),
        ("limit=-1", "FET-0405", "Invalid Query Parameter"),
        ("limit=1_0", "FET-0405", "Invalid Query Parameter"),
        ("limit=101", "FET-0406", "Pagination Limit Exceeded"),
        ("page=0", "FET-0405", "Invalid Query Parameter"),
        ("page=-1", "FET-0405", "Invalid Query Parameter"),
        ("page=x", "FET-0405", "Invalid Query Parameter"),
        ("page=99999999999999999", "FET-0405", "Invalid Query Parameter"),
        ("sortOrder=up", "FET-0407", "Invalid Sort Order"),
        ("startDate=2026-02-30", "FET-0408", "Invalid Date Format Error"),
        ("startDate=01/02/2026", "FET-0408", "Invalid Date Format Error"),
        ("endDate=2026-2-3", "FET-0408", "Invalid Date Format Error"),
        ("startDate=2026-03-02&endDate=2026-03-01", "FET-0409", "Invalid Final Date Error"),
        ("cursor=%23%23%23", "FET-0405", "Invalid Query Parameter"),
        ("cursor=e30=", "FET-0405", "Invalid Query Parameter"),
        ("$where=1", "FET-0405", "Invalid Query Parameter"),
        ("_id=x", "FET-0405", "Invalid Query Parameter"),
        ("n" * 65 + "=1", "FET-0405", "Invalid Query Parameter"),
        ("foo=" + "v" * 257, "FET-0405", "Invalid Query Parameter"),
        ("metadata.$where=1", "FET-0405", "Invalid Query Parameter"),
        ("metadata.a..b=1", "FET-0405", "Invalid Query Parameter"),
    ],
)
async def test_bad_query_parameters_are_refused(query: str, code: str, title: str) -> None:
    answered = await an_api().get(f"{CONNECTIONS}?{query}")
    assert answered.problem == (400, code, title)


async def test_parameters_are_judged_in_a_fixed_order() -> None:
    query = "startDate=x&sortOrder=up&page=0&limit=101"
    answered = await an_api().get(f"{CONNECTIONS}?{query}")
    assert answered.json["code"] == "FET-0406"


@pytest.mark.parametrize("query", ["foo=bar", "limit=", "page=&sortOrder=", "limit=x&limit=5"])
async def test_unknown_and_empty_parameters_are_ignored_and_the_last_counts(query: str) -> None:
    assert await listed(await an_api_with("one"), f"?{query}") == ["one"]


async def test_valid_cursor_has_no_effect() -> None:
    cursor = base64.b64encode(b'{"id":"x","points_next":true}').decode()
    assert await listed(await an_api_with("one"), f"?cursor={cursor}") == ["one"]


@pytest.mark.parametrize("limit", ["100", "%2B5"])
async def test_limits_within_the_bounds_are_accepted(limit: str) -> None:
    assert await listed(await an_api_with("one"), f"?limit={limit}") == ["one"]


# --- dates -----------------------------------------------------------------------------------


async def an_api_of_days(*days: str) -> Api:
    api = an_api()
    for number, day in enumerate(days):
        created = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
        await api.records.connections.insert(
            a_connection(config_name=f"db_{number}_{day[5:7]}", created_at=created)
        )
    return api


async def test_without_dates_every_connection_is_listed() -> None:
    """Decisions: no default window."""
    api = await an_api_of_days("2019-01-01", "2026-03-01")
    assert await listed(api) == ["db_1_03", "db_0_01"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("startDate=2026-03-02", ["db_2_04"]),
        ("endDate=2026-02-01", ["db_0_01"]),
        ("startDate=2026-03-01&endDate=2026-03-01", ["db_1_03"]),
        ("startDate=2026-03-01&endDate=2026-03-02", ["db_1_03"]),
        ("startDate=2025-10-01&endDate=2026-04-02", ["db_2_04"]),
    ],
    ids=["from", "until", "one day", "half-open", "moved to end minus one month"],
)
async def test_dates_narrow_the_list(query: str, found: list[str]) -> None:
    api = await an_api_of_days("2026-01-01", "2026-03-01", "2026-04-01")
    assert await listed(api, f"?{query}") == found


@pytest.mark.parametrize("query", ["endDate=0001-01-01", "startDate=9999-12-31&endDate=9999-12-31"])
async def test_dates_at_the_ends_of_the_calendar_do_no_harm(query: str) -> None:
    assert await listed(await an_api_with("one"), f"?{query}") == []
