"""POST /v1/fetcher: spec rest-api 17.5 and case 22, with the design's changes."""

import threading
from typing import Any

import pytest
from trio.testing import MockClock

from fetcher.api.services import HttpSettings
from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed
from fetcher.domain.json_values import JsonValue
from fetcher.domain.request_hash import request_hash
from fetcher_engine import SourceFailure, Stage
from tests.unit.api.harness import JOBS, a_connection, a_request, an_api, an_api_with, stored

NEW = "Job created and queued for processing"


async def test_valid_request_is_stored_pending_and_hinted_once(autojump_clock: MockClock) -> None:
    api = await an_api_with()
    filters: JsonValue = {"sales_db": {"orders": {"total": {"gte": [100]}}}}
    answered = await api.call(
        "POST", JOBS, a_request(filters=filters), headers={"X-Request-Id": "r-1"}
    )
    job = await stored(api, answered)
    assert answered.json == {
        "jobId": str(job.id),
        "status": "pending",
        "createdAt": "2026-03-14T09:26:53.123Z",
        "message": NEW,
    }
    assert answered.headers["Location"] == f"{JOBS}/{job.id}"
    assert job.id.version == 7
    assert job.mapped_fields == {"sales_db": {"orders": ("id", "total")}}
    assert job.filters == {"sales_db": {"orders": {"total": {"gte": (100,)}}}}
    assert job.metadata == {"source": "acme-reports"}
    assert job.request_id == "r-1"
    assert api.hints == [job.id]


async def test_field_that_is_asked_for_twice_counts_once() -> None:
    api = await an_api_with()
    mapped: JsonValue = {"sales_db": {"orders": ["id", "total", "id"]}}
    job = await stored(api, await api.ask(a_request(mappedFields=mapped)))
    assert job.mapped_fields == {"sales_db": {"orders": ("id", "total")}}


async def test_star_alone_is_accepted() -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request(mappedFields={"sales_db": {"orders": ["*"]}})))
    assert job.mapped_fields == {"sales_db": {"orders": ("*",)}}


async def test_exact_numbers_reach_the_record() -> None:
    api = await an_api_with()
    body = (
        b'{"dataRequest":{"mappedFields":{"sales_db":{"orders":["id"]}},"filters":{"sales_db":'
        b'{"orders":{"id":{"in":[9007199254740993,12.50]}}}}},"metadata":{"source":"acme-reports"}}'
    )
    answered = await api.call("POST", JOBS, data=body, headers={"Content-Type": "application/json"})
    job = await stored(api, answered)
    values = job.filters["sales_db"]["orders"]["id"]["in"]
    assert [str(value) for value in values] == ["9007199254740993", "12.50"]


@pytest.mark.parametrize("source", ["Acme-Reports", " acme-reports "])
async def test_products_are_compared_without_case(source: str) -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request(metadata={"source": source})))
    assert job.metadata == {"source": source}


async def test_members_beside_the_data_request_are_ignored() -> None:
    api = await an_api_with()
    answered = await api.ask(a_request() | {"colour": "red"})
    assert answered.status == 202


async def test_names_of_declared_members_match_in_any_case() -> None:
    api = await an_api_with()
    body = {
        "DATAREQUEST": {
            "MAPPEDFIELDS": {"sales_db": {"orders": ["id"]}},
            "Filters": {"sales_db": {"orders": {"id": {"EQ": [1]}}}},
        },
        "Metadata": {"source": "acme-reports"},
    }
    job = await stored(api, await api.ask(body))
    assert job.filters == {"sales_db": {"orders": {"id": {"eq": (1,)}}}}


@pytest.mark.parametrize(
    ("mapped", "path"),
    [
        (["sales_db"], "dataRequest.mappedFields"),
        ("sales_db", "dataRequest.mappedFields"),
        ({"sales_db": ["orders"]}, "dataRequest.mappedFields.sales_db"),
        ({"sales_db": {"orders": "id"}}, "dataRequest.mappedFields.sales_db.orders"),
        ({"sales_db": {"public.orders": [7]}}, 'mappedFields.sales_db["public.orders"][0]'),
    ],
)
async def test_mapped_fields_of_another_shape_are_an_invalid_payload(
    mapped: JsonValue, path: str
) -> None:
    answered = await (await an_api_with()).ask(a_request(mappedFields=mapped))
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert path in answered.json["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"source": "x"}},
        {"dataRequest": None, "metadata": {"source": "x"}},
        {"dataRequest": {}, "metadata": {"source": "x"}},
        a_request(mappedFields=None),
        None,
    ],
)
async def test_missing_mapped_fields_are_named(body: JsonValue) -> None:
    api = await an_api_with()
    answered = await api.call(
        "POST",
        JOBS,
        body,
        headers={"Content-Type": "application/json"},
        data=b"null" if body is None else None,
    )
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["mappedFields"]


@pytest.mark.parametrize(
    ("mapped", "path"),
    [
        ({}, "dataRequest.mappedFields"),
        ({"ds": {}}, "dataRequest.mappedFields.ds"),
        ({"ds": {"t": []}}, "dataRequest.mappedFields.ds.t"),
        ({"ds": {"t": None}}, "dataRequest.mappedFields.ds.t"),
        ({"ds": None}, "dataRequest.mappedFields.ds"),
        # Voided row: an empty table beside a full one is an error since design section 7.
        ({"ds": {"t": ["id"], "u": []}}, "dataRequest.mappedFields.ds.u"),
        ({" ": {"t": ["id"]}}, 'dataRequest.mappedFields[" "]'),
        ({"ds": {"": ["id"]}}, 'dataRequest.mappedFields.ds[""]'),
        ({"ds": {"t": ["id", " "]}}, "dataRequest.mappedFields.ds.t[1]"),
        ({"ds": {"t": ["*", "id"]}}, "dataRequest.mappedFields.ds.t"),
        ({"ds": {"t\0": ["id"]}}, "dataRequest.mappedFields.ds"),
        ({f"ds{n}": {"t": ["id"]} for n in range(11)}, "10 data sources"),
        ({"ds": {f"t{n}": ["id"] for n in range(21)}}, "20 tables"),
        ({"ds": {"t": [f"f{n}" for n in range(51)]}}, "50 fields"),
    ],
)
async def test_mapped_fields_that_ask_for_nothing_or_too_much_are_refused(
    mapped: JsonValue, path: str
) -> None:
    answered = await (await an_api_with()).ask(a_request(mappedFields=mapped))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert path in answered.json["message"]


async def test_counts_at_their_limits_pass_on() -> None:
    names = [f"db_{number}" for number in range(10)]
    tables: dict[str, JsonValue] = {f"t{n}": [f"f{m}" for m in range(50)] for n in range(20)}
    api = await an_api_with(*names)
    answered = await api.ask(a_request(mappedFields=dict.fromkeys(names, tables)))
    assert answered.status == 202


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"dataRequest": "all"}, "dataRequest"),
        (
            {"dataRequest": {"mappedFields": {"sales_db": ["orders"]}}},
            "dataRequest.mappedFields.sales_db",
        ),
        ({"dataRequest": {"options": {"limits": 5}}}, "dataRequest.options.limits"),
    ],
)
async def test_what_should_be_an_object_is_told_in_words_of_json(
    body: JsonValue, path: str
) -> None:
    answered = await (await an_api_with()).ask(body)
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert answered.json["message"] == (
        f"unable to parse request body: {path}: Input should be a valid object"
    )


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ({"mappedField": {}}, "dataRequest.mappedField"),
        ({"limit": 5}, "dataRequest.limit"),
        ({"options": {"colour": "red"}}, "dataRequest.options.colour"),
        ({"options": {"limits": {"maxRows": 1}}}, "dataRequest.options.limits.maxRows"),
        (
            {"filters": {"sales_db": {"orders": {"total": {"equals": [1]}}}}},
            "dataRequest.filters.sales_db.orders.total.equals",
        ),
    ],
)
async def test_unknown_member_below_the_data_request_is_named(
    member: dict[str, JsonValue], path: str
) -> None:
    answered = await (await an_api_with()).ask(a_request(**member))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    message = answered.json["message"]
    assert message.startswith(f"{path} is not known, only ")
    assert path.rpartition(".")[2] not in message.rpartition(" only ")[2].split(", ")


async def test_who_misspells_an_operator_is_told_which_there_are() -> None:
    filters: JsonValue = {"sales_db": {"orders": {"a b": {"{greater}": [1]}}}}
    answered = await (await an_api_with()).ask(a_request(filters=filters))
    assert answered.json["message"] == (
        'dataRequest.filters.sales_db.orders["a b"]["{greater}"] is not known, only'
        " between, eq, gt, gte, in, is_null, like, lt, lte, ne, nin, not_null"
    )


async def test_an_undeclared_member_that_is_null_is_absent_like_any_other() -> None:
    assert (await (await an_api_with()).ask(a_request(optoins=None))).status == 202


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        (None, "Missing Required Field"),
        ({}, "Missing Required Field"),
        ({"source": None}, "Missing Required Field"),
        ({"source": ""}, "Invalid Field Value"),
        ({"source": "  "}, "Invalid Field Value"),
        ({"source": 7}, "Invalid Field Value"),
    ],
)
async def test_metadata_needs_a_source(metadata: JsonValue, title: str) -> None:
    answered = await (await an_api_with()).ask(a_request(metadata=metadata))
    assert answered.problem == (400, "FET-0402", title)


async def test_empty_mapped_fields_go_before_missing_metadata() -> None:
    answered = await (await an_api_with()).ask(a_request(mappedFields={}, metadata=None))
    assert answered.json["code"] == "FET-0401"


@pytest.mark.parametrize("key", ["error", "terminalEventPending", "terminalEventX", "a.b", "$set"])
async def test_reserved_and_unstorable_metadata_keys_are_refused(key: str) -> None:
    answered = await (await an_api_with()).ask(
        a_request(metadata={"source": "acme-reports", key: 1})
    )
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert "metadata" in answered.json["message"]


@pytest.mark.parametrize("metadata", [{"a": "x" * 70_000}, {"a": [{"b\0": 1}]}])
async def test_metadata_that_is_too_large_or_holds_nul_keys_is_refused(
    metadata: dict[str, JsonValue],
) -> None:
    api = await an_api_with()
    answered = await api.ask(a_request(metadata={"source": "acme-reports"} | metadata))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")


async def test_none_configured_and_one_missing_have_two_titles() -> None:
    api = await an_api_with()
    none = await api.ask(a_request(mappedFields={"x": {"t": ["id"]}, "y": {"t": ["id"]}}))
    assert none.problem == (400, "FET-1020", "No Connections Found")
    both: JsonValue = {"zz": {"t": ["id"]}, "sales_db": {"t": ["id"]}, "b_db": {"t": ["id"]}}
    some = await api.ask(a_request(mappedFields=both))
    assert some.problem == (400, "FET-1020", "Missing Data Source")
    assert "b_db" in some.json["message"]


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"d" * 1025: {"orders": ["id"]}}, {}),
        ({"sales_db": {"." * 1025: ["id"]}}, {}),
        ({"sales_db": {"orders": ["f" * 1025]}}, {}),
        ({"sales_db": {"orders": ["id"]}}, {"sales_db": {"orders": {"f" * 1025: {"eq": [1]}}}}),
    ],
)
async def test_names_longer_than_any_database_has_are_refused(
    fields: JsonValue, filters: JsonValue
) -> None:
    """One request with a name of a million dots once took all of a worker's memory."""
    api = await an_api_with()
    answered = await api.ask(a_request(mappedFields=fields, filters=filters))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert answered.json["message"].startswith("dataRequest.")
    assert len(answered.json["message"]) < 300


async def test_blank_around_a_config_name_is_another_name() -> None:
    api = await an_api_with()
    answered = await api.ask(a_request(mappedFields={" sales_db": {"t": ["id"]}}))
    assert answered.json["code"] == "FET-1020"


async def test_connection_without_a_product_is_refused() -> None:
    api = an_api()
    await api.records.connections.insert(a_connection(product_name=""))
    answered = await api.ask(a_request())
    assert answered.problem == (400, "FET-1014", "Connection Not Assigned")


async def test_connection_of_another_product_is_refused() -> None:
    answered = await (await an_api_with()).ask(a_request(metadata={"source": "billing"}))
    assert answered.problem == (400, "FET-1016", "Product Mismatch")


async def test_wrong_credentials_store_nothing() -> None:
    api = await an_api_with()
    api.engines.source("sales_db").test_error = SourceFailure(Stage.AUTH, "auth")
    answered = await api.ask(a_request())
    assert answered.problem == (400, "FET-1040", "Connection Down")
    assert (answered.json["source"], answered.json["stage"], answered.json["reason"]) == (
        "sales_db",
        "auth",
        "auth",
    )
    assert api.hints == []
    assert await api.records.jobs.latest_ended() is None


async def test_unknown_table_is_accepted() -> None:
    """The schema is looked at when the job runs."""
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request(mappedFields={"sales_db": {"none": ["x"]}})))
    assert job.mapped_fields == {"sales_db": {"none": ("x",)}}


async def test_preflight_can_be_switched_off() -> None:
    api = await an_api_with(settings=HttpSettings(preflight_test=False))
    api.engines.source("sales_db").test_error = SourceFailure(Stage.AUTH, "auth")
    assert (await api.ask(a_request())).status == 202
    assert api.engines.asked == []


async def test_job_on_a_connection_that_is_left_alone_is_accepted_without_a_login() -> None:
    api = await an_api_with()
    api.engines.source("sales_db").test_error = SourceFailure(Stage.AUTH, "auth")
    [connection] = await api.records.connections.find_by_config_names(["sales_db"])
    rule = failed(connection, SourceDown(stage="auth", reason="auth"))
    assert (await api.ask(a_request())).problem[:2] == (400, "FET-1040")
    for _ in range(FAILURES_TO_OPEN):
        await api.records.breakers.change(connection.id, rule)
    dialled = len(api.engines.asked)
    assert (await api.ask(a_request())).status == 202
    assert len(api.engines.asked) == dialled


async def test_large_request_is_judged_and_shown_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4 MiB of filters take a second to hash, in which nobody else would be served."""
    threads: list[int] = []

    def noted_hash(*parts: Any) -> str:
        threads.append(threading.get_ident())
        return request_hash(*parts)

    monkeypatch.setattr("fetcher.domain.job_order.request_hash", noted_hash)
    api = await an_api_with()
    values: JsonValue = list(range(10**9, 10**9 + 10_000))
    filters: JsonValue = {"sales_db": {"orders": {"id": {"in": values}}}}
    created = await api.ask(a_request(filters=filters))
    assert created.status == 202
    shown = await api.get(created.headers["Location"])
    assert shown.json["filters"] == filters
    await api.ask(a_request())
    assert [thread == threading.get_ident() for thread in threads] == [False, True]
