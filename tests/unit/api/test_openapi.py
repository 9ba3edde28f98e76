"""The served document against the routes and the handlers' answers."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no stubs
from openapi_spec_validator import validate as validate_document

from fetcher.adapters.auth.local_token import LocalToken
from fetcher.api.application import manager_routes
from fetcher.api.console_page import PAGE as CONSOLE
from fetcher.api.models import request_schemas
from fetcher.api.openapi import openapi_document
from fetcher.api.problems import STATUS
from fetcher.api.refusals import Refusal, by_status
from fetcher.api.routing import JSON
from fetcher.api.services import DocumentFacts, HealthAnswer, ReadinessAnswer
from fetcher.api.swagger_page import PAGE as SWAGGER
from fetcher.domain.jobs import FailureFacts, JobStatus, ResultFacts
from fetcher.ports import ProbeResult, ProbeStatus
from fetcher_engine import Limits, SchemaSnapshot, TableSnapshot
from tests.unit.api.described import assert_answer, document_bytes, operations
from tests.unit.api.harness import (
    CONNECTIONS,
    JOBS,
    PRODUCT,
    START,
    Answered,
    Api,
    a_body,
    a_connection,
    a_job,
    a_request,
    an_api,
    end,
)
from tests.unit.api.results import an_api_with_store, completed, result_path


async def document_of(api: Api) -> dict[str, Any]:
    answered = await api.get("/openapi.json")
    assert answered.headers["Content-Type"] == "application/json"
    document: dict[str, Any] = json.loads(answered.raw)
    return document


def assert_described(document: Mapping[str, Any], name: str, answered: Answered) -> None:
    """The answer is one that the document has for its operation."""
    assert_answer(
        json.dumps(document).encode(), name, answered.status, answered.headers, answered.raw
    )


async def test_document_is_valid_openapi_3_1() -> None:
    document = await document_of(an_api())
    assert document["openapi"] == "3.1.0"
    validate_document(document)


async def test_every_route_is_in_the_document_and_nothing_else() -> None:
    api = an_api()
    served = {
        (method, rule.rule.replace("<", "{").replace(">", "}"))
        for rule in api.app.url_map.iter_rules()
        for method in rule.methods or ()
        if method != "HEAD" and not rule.rule.startswith((SWAGGER.root, CONSOLE.root))
    }
    document = await document_of(api)
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == served
    assert ("POST", JOBS) in described


async def test_path_parameters_are_described() -> None:
    document = await document_of(an_api())
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == ({"id"} if "{id}" in path else set())


async def test_request_members_have_the_wire_s_names() -> None:
    schemas = (await document_of(an_api()))["components"]["schemas"]
    for connection in schemas["CreateConnectionRequest"]["anyOf"][:5]:
        names = set(connection["properties"])
        assert {"configName", "databaseName", "schema", "userName", "ssl"} <= names
    condition = schemas["ConditionRequest"]
    assert {"in", "is_null", "between"} <= set(condition["properties"])
    assert condition["additionalProperties"] is False
    assert "additionalProperties" not in schemas["CreateJobRequest"]
    patched = schemas["PatchConnectionRequest"]
    assert "additionalProperties" not in patched
    assert patched["properties"].keys() == connection["properties"].keys()
    for told in (connection["properties"]["ssl"], patched["properties"]["ssl"]):
        assert [s.get("additionalProperties", False) for s in told["anyOf"]] == [False] * len(
            told["anyOf"]
        )


async def test_limits_that_a_request_may_lower_are_told_with_this_service_s_own() -> None:
    ceilings = replace(Limits.defaults(), max_result_bytes=7_000, timeout=2.5)
    document = await document_of(an_api(ceilings=ceilings))
    told = document["components"]["schemas"]["LimitsRequest"]["properties"]
    most = {name: limit["anyOf"][0]["maximum"] for name, limit in told.items()}
    assert most == {
        "maxDatasources": 10,
        "maxTablesPerDatasource": 20,
        "maxFieldsPerTable": 50,
        "maxConcurrency": 4,
        "timeout": 2.5,
        "maxResultBytes": 7_000,
    }


@pytest.mark.parametrize(
    ("fields", "status"), [(["*"], 202), (["id", "*"], 400), (["id", "total"], 202)]
)
async def test_star_stands_alone_in_the_document_as_in_the_service(
    fields: list[str], status: int
) -> None:
    api = an_api()
    await api.records.connections.insert(a_connection())
    request = a_request(mappedFields={"sales_db": {"orders": [*fields]}})
    document = await document_of(api)
    schema = {"$ref": "#/components/schemas/CreateJobRequest", "components": document["components"]}
    assert Draft202012Validator(schema).is_valid(request) == (status == 202)
    assert (await api.ask(request)).status == status


def test_blank_is_in_the_document_what_it_is_to_the_rules() -> None:
    characters = [chr(code) for code in range(1, 0x3100)]
    named = [each for each in characters if re.search(request_schemas.NAME, each)]
    assert named == [each for each in characters if each.strip()]
    assert named == [each for each in characters if re.search(request_schemas.NOT_BLANK, each)]


async def test_answers_of_connection_operations_are_as_described() -> None:
    api = an_api()
    document = await document_of(api)
    full = a_body(metadata={"a": [1, None]}, schema="public", ssl={"mode": "require"})
    created = await api.create(full)
    connection_id = created.json["id"]
    api.engines.source("sales_db").schema = SchemaSnapshot("", (TableSnapshot("t", ("a",)),))
    assert_described(document, "create_connection", created)
    for name, method, path, status in (
        ("list_connections", "GET", CONNECTIONS, 200),
        ("get_connection", "GET", f"{CONNECTIONS}/{connection_id}", 200),
        ("test_connection", "POST", f"{CONNECTIONS}/{connection_id}/test", 200),
        ("get_connection_schema", "GET", f"{CONNECTIONS}/{connection_id}/schema", 200),
        ("get_connection", "GET", f"{CONNECTIONS}/{uuid.uuid4()}", 404),
        ("list_connections", "GET", f"{CONNECTIONS}?limit=0", 400),
        ("list_unassigned_connections", "GET", f"{CONNECTIONS}/unassigned", 200),
    ):
        answered = await api.call(method, path)
        assert answered.status == status
        assert_described(document, name, answered)
    assert_described(document, "create_connection", await api.create(a_body(port=None)))
    one, validate = f"{CONNECTIONS}/{connection_id}", f"{CONNECTIONS}/validate-schema"
    for name, method, path, body, status in (
        ("validate_schema", "POST", validate, {"mappedFields": {"sales_db": {"t": ["a"]}}}, 200),
        ("validate_schema", "POST", validate, {"mappedFields": {"sales_db": {"t": ["b"]}}}, 422),
        ("validate_schema", "POST", validate, {}, 400),
        ("assign_connection", "POST", f"{one}/assign", None, 409),
        ("patch_connection", "PATCH", one, {"port": 5433}, 200),
        ("patch_connection", "PATCH", one, {"port": 0}, 400),
    ):
        answered = await api.call(method, path, body, headers=PRODUCT)
        assert answered.status == status
        assert_described(document, name, answered)
    removed = await api.call("DELETE", one)
    assert (removed.status, removed.raw) == (204, b"")
    described = document["paths"][f"{CONNECTIONS}/{{id}}"]["delete"]["responses"]
    assert "content" not in described["204"]
    assert_described(document, "delete_connection", await api.call("DELETE", one))


async def test_answers_of_job_operations_are_as_described() -> None:
    api = an_api()
    document = await document_of(api)
    await api.records.connections.insert(a_connection())
    request = a_request(
        filters={"sales_db": {"orders": {"id": {"in": [1, None]}}}}, options={"values": "natural"}
    )
    created = await api.ask(request)
    repeated = await api.ask(request)
    assert (created.status, repeated.status) == (202, 200)
    assert_described(document, "create_job", created)
    assert_described(document, "create_job", repeated)
    shown = await api.get(f"{JOBS}/{created.json['jobId']}")
    assert_described(document, "get_job", shown)
    assert_described(document, "create_job", await api.ask({}))


async def test_answers_of_result_operations_are_as_described() -> None:
    api = an_api_with_store()
    document = await document_of(api)
    job = await completed(api)
    for name, method, path, status in (
        ("list_jobs", "GET", f"{JOBS}?limit=1", 200),
        ("get_job", "GET", f"{JOBS}/{job.id}", 200),
        ("get_job_result", "GET", result_path(job), 200),
        ("preview_job_result", "GET", f"{result_path(job)}/preview", 200),
        ("cancel_job", "POST", f"{JOBS}/{job.id}/cancel", 409),
        ("rerun_job", "POST", f"{JOBS}/{job.id}/rerun", 400),
        ("delete_job_result", "DELETE", result_path(job), 204),
        ("delete_job_result", "DELETE", result_path(job), 404),
    ):
        answered = await api.call(method, path)
        assert answered.status == status
        assert_described(document, name, answered)


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED])
async def test_answers_for_ended_jobs_are_as_described(status: JobStatus) -> None:
    api = an_api()
    job = a_job(
        result=ResultFacts(path="p", hmac="h", size_bytes=1, row_count=1, key_version="1"),
        failure=FailureFacts(message="m", code="c") if status is JobStatus.FAILED else None,
        created_at=START,
    )
    await api.records.jobs.insert(job)
    await end(api, job, status)
    answered = await api.get(f"{JOBS}/{job.id}")
    assert "completedAt" in answered.json
    assert_described(await document_of(api), "get_job", answered)


async def test_answers_of_system_routes_are_as_described() -> None:
    down = ProbeResult(status=ProbeStatus.DOWN, error="timeout", tls=False)
    for api in (
        an_api(),
        an_api(
            health=HealthAnswer(self_probe_passed=False),
            readiness=ReadinessAnswer(draining=False, checks={"mongodb": down}),
        ),
    ):
        document = await document_of(api)
        for name, path in (
            ("health", "/health"),
            ("readiness", "/readyz"),
            ("metrics", "/metrics"),
            ("version", "/version"),
            ("openapi", "/openapi.json"),
        ):
            assert_described(document, name, await api.get(path))


async def test_product_operations_ask_for_a_token_where_one_is_looked_at() -> None:
    guarded, open_to_all = an_api(authorizer=LocalToken("canary-token-9f3a7c")), an_api()
    asked: list[dict[str, list[str]]] = [{"bearer": []}]
    for api, security in ((guarded, asked), (open_to_all, [*asked, {}])):
        document = await document_of(api)
        validate_document(document)
        scheme = document["components"]["securitySchemes"]["bearer"]
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
        for path, methods in document["paths"].items():
            for operation in methods.values():
                is_product = path.startswith("/v1/")
                assert operation.get("security") == (security if is_product else None), path
                is_judged = is_product and api is guarded
                assert ("401" in operation["responses"]) is is_judged


async def test_refusals_are_as_described() -> None:
    api = an_api(authorizer=LocalToken("canary-token-9f3a7c"))
    document = await document_of(api)
    assert_described(document, "list_connections", await api.get(CONNECTIONS))
    in_json = await api.get(CONNECTIONS, {"Accept": "application/json"})
    assert in_json.status == 401
    assert_described(document, "list_connections", in_json)


async def test_every_status_names_its_codes_and_no_operation_hides_behind_a_default() -> None:
    document = await document_of(an_api())
    for methods in document["paths"].values():
        for operation in methods.values():
            responses = operation["responses"]
            assert "default" not in responses
            assert {"408", "413", "431", "500", "503"} <= set(responses)
            for status, told in responses.items():
                assert "X-Request-Id" in told["headers"]
                assert ("Retry-After" in told["headers"]) is (
                    status == "429"
                    or (status == "503" and operation["operationId"] not in ("health", "readiness"))
                )
    create = operations(await document_bytes(an_api().app))["create_job"]["responses"]
    assert set(create) == {"200", "202", "400", "408", "409", "413", "429", "431", "500", "503"}
    schema = create["409"]["content"]["application/json"]["schema"]
    assert schema["properties"]["errorCode"]["enum"] == ["FET-1025"]
    assert schema["properties"]["code"]["enum"] == ["FET-1025"]
    limited = create["429"]["content"]["application/json"]["schema"]["properties"]
    assert limited == {
        "code": {"enum": [429]},
        "errorCode": {"enum": ["too_many_pending_jobs"]},
    }


async def test_every_operation_has_an_example_that_its_own_schema_takes() -> None:
    document = await document_of(an_api())
    components = {"components": document["components"]}
    shown: list[str] = []
    for methods in document["paths"].values():
        for operation in methods.values():
            told = [
                each["content"] for each in operation["responses"].values() if "content" in each
            ]
            if "requestBody" in operation:
                told.append(operation["requestBody"]["content"])
            examples = [c["application/json"] for c in told if "example" in c.get(JSON, {})]
            parameters = [each for each in operation.get("parameters", []) if "example" in each]
            for each in (*examples, *parameters):
                Draft202012Validator(each["schema"] | components).validate(each["example"])
            if examples or parameters:
                shown.append(operation["operationId"])
    told_by_media_type = {"metrics", "openapi"}
    assert set(shown) == set(operations(json.dumps(document).encode())) - told_by_media_type


async def test_refusals_in_the_authorization_service_s_words_have_ranges_of_their_own() -> None:
    guarded = openapi_document(
        manager_routes(an_api().services),
        DocumentFacts(),
        ceilings=Limits.defaults(),
        asks_for_token=True,
        relays=True,
    )
    validate_document(guarded)
    responses = operations(json.dumps(guarded).encode())["get_job"]["responses"]
    assert {"4XX", "5XX", "401", "403"} <= set(responses)
    local = openapi_document(
        manager_routes(an_api().services),
        DocumentFacts(),
        ceilings=Limits.defaults(),
        asks_for_token=True,
        relays=False,
    )
    assert "4XX" not in operations(json.dumps(local).encode())["get_job"]["responses"]


def test_every_code_that_has_a_status_has_a_meaning() -> None:
    for code in STATUS:
        refusal = Refusal.of(code)
        assert (refusal.status, refusal.code) == (STATUS[code], code)
    assert [each.error_code for each in by_status(["FET-1002", "FET-0404", "FET-1002"])[409]] == [
        "FET-1002"
    ]
