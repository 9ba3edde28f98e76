"""Test and schema of a connection: spec rest-api 17.4."""

from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from fetcher.domain.connections import TlsSettings
from fetcher.domain.ids import new_connection_id
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, SourceFailure, Stage, TableSnapshot
from tests.unit.api.harness import CONNECTIONS, Answered, Api, a_connection, a_request, an_api


async def an_api_with_connection() -> tuple[Api, str]:
    api = an_api()
    connection = a_connection()
    await api.records.connections.insert(connection)
    return api, str(connection.id)


async def try_out(api: Api, connection_id: str) -> Answered:
    return await api.call("POST", f"{CONNECTIONS}/{connection_id}/test")


async def test_reachable_one_tells_its_latency(autojump_clock: MockClock) -> None:
    api, connection_id = await an_api_with_connection()

    async def slow() -> None:
        await trio.sleep(0.0421)

    api.engines.source("sales_db").before_test = slow
    answered = await try_out(api, connection_id)
    assert answered.status == 200
    assert answered.json == {
        "status": "success",
        "message": "Connection successful",
        "latencyMs": 42,
    }


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (Stage.TCP, "refused"),
        (Stage.AUTH, "auth"),
        (Stage.DNS, "dns"),
        (Stage.TLS, "tls"),
        (Stage.TLS, "tls_required"),
    ],
)
async def test_unreachable_one_is_a_500_that_names_stage_and_reason(
    stage: Stage, reason: str
) -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").test_error = SourceFailure(stage, reason)
    answered = await try_out(api, connection_id)
    assert answered.problem == (500, 500, "Database Connection Error")
    assert answered.json["errorCode"] == "engine_connect"
    assert (answered.json["stage"], answered.json["reason"]) == (str(stage), reason)
    assert b"pg1.acme.test" not in answered.raw


async def test_driver_text_never_reaches_the_caller() -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").test_error = RuntimeError("password s3cret of pg1 refused")
    answered = await try_out(api, connection_id)
    assert answered.problem == (500, 500, "Database Connection Error")
    assert b"s3cret" not in answered.raw


async def test_source_that_never_answers_is_given_up_after_10_s(autojump_clock: MockClock) -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").before_test = trio.sleep_forever
    began = trio.current_time()
    answered = await try_out(api, connection_id)
    assert answered.problem == (500, 500, "Database Connection Error")
    assert answered.json["errorCode"] == "engine_timeout"
    assert trio.current_time() - began == pytest.approx(10)


async def test_eleventh_test_in_a_minute_waits_at_most_six_seconds(
    autojump_clock: MockClock,
) -> None:
    api, connection_id = await an_api_with_connection()
    assert [(await try_out(api, connection_id)).status for _ in range(10)] == [200] * 10
    refused = await try_out(api, connection_id)
    assert refused.problem == (429, 429, "Rate Limit Exceeded")
    assert refused.json["errorCode"] == "rate_limit_exceeded"
    assert refused.headers["Retry-After"] == "6"
    assert "6 seconds" in refused.json["message"]
    await trio.sleep(6)
    assert (await try_out(api, connection_id)).status == 200
    assert (await try_out(api, connection_id)).status == 429


async def test_unknown_ids_take_from_the_limit_too(autojump_clock: MockClock) -> None:
    api, unknown = an_api(), str(new_connection_id())
    statuses = [(await try_out(api, unknown)).status for _ in range(11)]
    assert statuses == [404] * 10 + [429]


async def test_bad_id_is_refused_before_the_limit_counts() -> None:
    api = an_api()
    answered = await try_out(api, "not-a-uuid")
    assert answered.problem == (400, "FET-0404", "Invalid Path Parameter")


# --- schema ----------------------------------------------------------------------------------


async def schema_of(api: Api, connection_id: str) -> Answered:
    return await api.get(f"{CONNECTIONS}/{connection_id}/schema")


def a_snapshot(tables: Mapping[str, tuple[str, ...]]) -> SchemaSnapshot:
    return SchemaSnapshot("", tuple(TableSnapshot(name, fields) for name, fields in tables.items()))


async def test_schema_is_sorted_by_bytes() -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").schema = a_snapshot(
        {"orders": ("total", "id", "Zone"), "Users": ("id",), "éclair": ()}
    )
    answered = await schema_of(api, connection_id)
    assert answered.json == {
        "id": connection_id,
        "configName": "sales_db",
        "databaseName": "sales",
        "type": "POSTGRESQL",
        "tables": [
            {"name": "Users", "fields": ["id"]},
            {"name": "orders", "fields": ["Zone", "id", "total"]},
            {"name": "éclair", "fields": []},
        ],
    }


async def test_schema_with_details_tells_types_keys_and_estimates() -> None:
    api, connection_id = await an_api_with_connection()
    columns = (
        ColumnSnapshot("total", "numeric(10,2)"),
        ColumnSnapshot("id", "bigint", nullable=False, primary_key=True),
    )
    api.engines.source("sales_db").schema = SchemaSnapshot(
        "",
        (
            TableSnapshot("orders", ("total", "id"), columns, estimated_rows=0),
            TableSnapshot("notes", ("text",)),
        ),
    )
    answered = await api.get(f"{CONNECTIONS}/{connection_id}/schema?details=true")
    assert answered.json["tables"] == [
        {"name": "notes", "fields": ["text"]},
        {
            "name": "orders",
            "fields": ["id", "total"],
            "columns": [
                {
                    "name": "total",
                    "type": "numeric(10,2)",
                    "nullable": True,
                    "primaryKey": False,
                },
                {"name": "id", "type": "bigint", "nullable": False, "primaryKey": True},
            ],
            "estimatedRows": 0,
        },
    ]
    plain = await api.get(f"{CONNECTIONS}/{connection_id}/schema?details=false")
    assert plain.json["tables"][1] == {"name": "orders", "fields": ["id", "total"]}


@pytest.mark.parametrize("text", ["1", "True", "yes"])
async def test_details_are_true_or_false(text: str) -> None:
    api, connection_id = await an_api_with_connection()
    answered = await api.get(f"{CONNECTIONS}/{connection_id}/schema?details={text}")
    assert answered.problem == (400, "FET-0405", "Invalid Query Parameter")


async def test_schema_without_tables_is_an_empty_list() -> None:
    api, connection_id = await an_api_with_connection()
    assert (await schema_of(api, connection_id)).json["tables"] == []


async def test_schema_is_read_anew_each_time() -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").schema = a_snapshot({"old": ()})
    await schema_of(api, connection_id)
    api.engines.source("sales_db").schema = a_snapshot({"new": ()})
    assert (await schema_of(api, connection_id)).json["tables"] == [{"name": "new", "fields": []}]


@pytest.mark.parametrize(
    ("failure", "title"),
    [
        (SourceFailure(Stage.TCP, "refused"), "Database Connection Error"),
        (SourceFailure(Stage.AUTH, "auth"), "Database Connection Error"),
        (SourceFailure(Stage.SCHEMA, "forbidden"), "Schema Retrieval Error"),
        (RuntimeError("driver text"), "Schema Retrieval Error"),
    ],
)
async def test_schema_failures_have_two_titles(failure: Exception, title: str) -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").discovery_error = failure
    answered = await schema_of(api, connection_id)
    assert answered.problem == (500, 500, title)
    assert b"driver text" not in answered.raw


async def test_schema_that_never_comes_is_given_up(autojump_clock: MockClock) -> None:
    api, connection_id = await an_api_with_connection()
    api.engines.source("sales_db").before_discovery = trio.sleep_forever
    answered = await schema_of(api, connection_id)
    assert answered.problem == (500, 500, "Schema Retrieval Error")


async def test_schema_of_an_unknown_one_is_not_found() -> None:
    answered = await schema_of(an_api(), str(new_connection_id()))
    assert answered.problem == (404, "FET-1001", "Entity Not Found")


async def test_schema_has_a_limit_of_its_own(autojump_clock: MockClock) -> None:
    api, connection_id = await an_api_with_connection()
    statuses = [(await schema_of(api, connection_id)).status for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert (await try_out(api, connection_id)).status == 200


async def test_stored_mode_of_another_type_is_refused_when_it_is_opened() -> None:
    """Spec 7.4: records of the reference may hold one."""
    api = an_api()
    connection = a_connection(tls=TlsSettings(mode="skip-verify", ca="x"))
    await api.records.connections.insert(connection)
    for answered in (
        await try_out(api, str(connection.id)),
        await schema_of(api, str(connection.id)),
        await api.ask(a_request()),
    ):
        assert answered.problem == (400, "FET-0413", "Invalid SSL Mode")
        assert 'valid modes for POSTGRESQL: "allow"' in answered.json["message"]
    assert api.engines.asked == []
