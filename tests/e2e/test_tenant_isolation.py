"""No way from one tenant to another: whatever of another tenant is named, wherever, the answer is
that for what does not exist, and nothing of the other's is seen or changed.

Every operation of the API document that takes an id is tried; one that is added is tried too.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pymongo
import pytest
from mypy_boto3_s3 import S3Client

from fetcher.adapters.dead_letters import REASON_HEADER
from tests.e2e import broker
from tests.e2e.cluster import Answer, Api, postgres_connection
from tests.e2e.tenancy import WORK_QUEUE, Tenancy, TenantPlace
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

UNKNOWN: Final = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
FIELDS: Final = {"sales_db": {"orders": ["id"]}}
FEW: Final = {"sales_db": {"orders": {"id": {"lt": [9007199254740999]}}}}
ENDLESS: Final = "/v1/fetcher/events"
"""What it tells has a test of its own in the unit tests."""
BODIES: Final[Mapping[str, object]] = {
    "patch_connection": {"databaseName": "another"},
}
"""Of operations with an id and a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What one tenant has: a connection and a job that is completed."""

    place: TenantPlace
    api: Api
    connection: str
    job: Mapping[str, Any]

    @property
    def ids(self) -> Mapping[str, str]:
        """By what the path is about."""
        return {"/v1/management/connections": self.connection, "/v1/fetcher": self.job["id"]}


@contextmanager
def two_tenants(tenancy: Tenancy, shop: SqlAddress) -> Iterator[tuple[Own, Own]]:
    places = [tenancy.add("mine"), tenancy.add("theirs")]
    with tenancy.process("all") as (_, api):
        mine, theirs = (
            prepared(place, api.of(place.tenant_id), postgres_connection(shop)) for place in places
        )
        yield mine, theirs


def prepared(place: TenantPlace, api: Api, connection: Mapping[str, object]) -> Own:
    made = api.connect(connection)
    assert made.status == 201, made.body
    posted = api.post_job(FIELDS, FEW)
    job = api.wait_for_job(posted.body["jobId"])
    assert job["status"] == "completed", job
    return Own(place=place, api=api, connection=made.body["id"], job=job)


def told(answer: Answer, asked: str) -> tuple[int, str]:
    """The answer without what differs between two askings: the id and the request's own."""
    return answer.status, json.dumps(answer.body, sort_keys=True).replace(asked, "<id>")


def test_another_tenants_id_in_a_path_is_that_of_nothing(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    with two_tenants(tenancy, shop) as (mine, theirs):
        document = mine.api.call("GET", "/openapi.json").body
        tried = 0
        for path, operations in document["paths"].items():
            if "{id}" not in path or not path.startswith("/v1/"):
                continue
            root = next(each for each in theirs.ids if path.startswith(each))
            for method, operation in operations.items():
                name = operation["operationId"]
                assert ("requestBody" in operation) == (name in BODIES), name
                answers = []
                for asked in (theirs.ids[root], UNKNOWN):
                    answer = mine.api.call(
                        method.upper(), path.replace("{id}", asked), BODIES.get(name)
                    )
                    answers.append(told(answer, asked))
                assert answers[0] == answers[1], name
                assert answers[0][0] == 404, name
                tried += 1
        assert tried >= 12
        unchanged(theirs)


def unchanged(own: Own) -> None:
    """What it has is there as before, for itself."""
    assert own.api.job(own.job["id"]) == own.job
    kept = own.api.call("GET", f"/v1/management/connections/{own.connection}")
    assert (kept.status, kept.body["configName"]) == (200, "sales_db")
    downloaded = own.api.call("GET", f"/v1/fetcher/{own.job['id']}/result/preview")
    assert downloaded.status == 200


def test_lists_streams_and_searches_show_nothing_of_another(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    with two_tenants(tenancy, shop) as (mine, theirs):
        document = mine.api.call("GET", "/openapi.json").body
        listed = [
            path
            for path, operations in document["paths"].items()
            if path.startswith("/v1/") and "{id}" not in path and "get" in operations
        ]
        listed.remove(ENDLESS)
        assert len(listed) >= 12
        for path in listed:
            answer = mine.api.call("GET", path)
            assert answer.status == 200, (path, answer.body)
            text = json.dumps(answer.body)
            for secret in (*theirs.ids.values(), theirs.place.tenant_id, theirs.place.database):
                assert secret not in text, path
        unchanged(theirs)


def test_another_tenants_things_in_a_body_are_those_of_nobody(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    """A connection is named by its config name: only one's own are found under it."""
    with two_tenants(tenancy, shop) as (mine, theirs):
        only_theirs = theirs.api.connect(postgres_connection(shop, configName="secret_db"))
        assert only_theirs.status == 201
        asked = {}
        for name in ("secret_db", "no_such_db"):
            fields = {name: {"orders": ["id"]}}
            asked[name] = [
                told(mine.api.post_job(fields), name),
                told(
                    mine.api.call(
                        "POST",
                        "/v1/management/connections/validate-schema",
                        {"mappedFields": fields},
                    ),
                    name,
                ),
                told(
                    mine.api.call(
                        "POST",
                        "/v1/fetcher/validate",
                        {"dataRequest": {"mappedFields": fields}, "metadata": {"source": "x"}},
                    ),
                    name,
                ),
            ]
        assert asked["secret_db"] == asked["no_such_db"]
        assert all(status in (400, 404, 422) for status, _ in asked["secret_db"][:1])
        # the same name is free for each
        assert mine.api.connect(postgres_connection(shop, configName="secret_db")).status == 201


def test_headers_name_no_tenant_and_carry_nothing_across(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    with two_tenants(tenancy, shop) as (mine, theirs):
        foreign = with_headers(mine.api, {"X-Tenant-ID": theirs.place.tenant_id})
        assert foreign("GET", f"/v1/fetcher/{mine.job['id']}").status == 200
        assert foreign("GET", f"/v1/fetcher/{theirs.job['id']}").status == 404
        # the same idempotency key, and the same request, are two jobs
        jobs = []
        for own in (mine, theirs):
            call = with_headers(own.api, {"Idempotency-Key": "the-same-key"})
            body = {
                "dataRequest": {"mappedFields": FIELDS, "filters": FEW},
                "metadata": {"source": "acme-reports", "n": 2},
            }
            posted = call("POST", "/v1/fetcher", body)
            assert posted.status in (200, 202), posted.body
            jobs.append(posted.body["jobId"])
        assert jobs[0] != jobs[1]
        resumed = with_headers(
            mine.api, {"Last-Event-ID": f"2026-03-14T09:26:53.000Z/{theirs.job['id']}"}
        )
        assert resumed("HEAD", "/v1/fetcher/events").status in (200, 400)


def with_headers(api: Api, headers: Mapping[str, str]) -> Any:
    def call(method: str, path: str, body: object = None) -> Answer:
        return api.call(method, path, body, headers=headers)

    return call


def test_a_message_of_another_tenant_is_nobodys_work(tenancy: Tenancy, shop: SqlAddress) -> None:
    """As it was sent, and with the other's name in its place: neither is signed for here."""
    mine, theirs = tenancy.add("mine"), tenancy.add("theirs")
    with tenancy.process("manager") as (_, api):
        own = api.of(theirs.tenant_id)
        assert own.connect(postgres_connection(shop)).status == 201
        job_id = own.post_job(FIELDS, FEW).body["jobId"]
        [sent] = eventually_sync(
            lambda: broker.read_all(theirs.vhost.url, WORK_QUEUE),
            deadline_seconds=15,
            what="the work message",
        )
        assert sent.header("X-Tenant-ID") == theirs.tenant_id
        renamed = {**sent.headers, "X-Tenant-ID": mine.tenant_id}
        nameless = {name: value for name, value in sent.headers.items() if name != "X-Tenant-ID"}
        for headers in (sent.headers, renamed, nameless):
            broker.publish(mine.vhost.url, WORK_QUEUE, sent.body, headers)
        with tenancy.process("worker"):
            letters = mine.letters(3)
            reasons = sorted(letter.header(REASON_HEADER) for letter in letters)
            assert reasons == ["bad_signature", "tenant_mismatch", "tenant_mismatch"]
            assert own.job(job_id)["status"] == "pending"


def test_a_remembered_schema_is_its_own_tenants(tenancy: Tenancy, shop: SqlAddress) -> None:
    """The same config name and the same cache, two databases."""
    host, _, port = tenancy.redis_url.partition("//")[2].partition("/")[0].rpartition(":")
    tenancy.changes |= {"REDIS_HOST": host.rpartition("@")[2], "REDIS_PORT": port}
    with two_tenants(tenancy, shop) as (mine, theirs):
        changed = theirs.api.call(
            "PATCH",
            f"/v1/management/connections/{theirs.connection}",
            {"databaseName": "postgres"},
        )
        assert changed.status == 200, changed.body
        schemas = [
            own.api.call("GET", f"/v1/management/connections/{own.connection}/schema")
            for own in (mine, theirs, mine)
        ]
        names = [re.findall(r"orders", json.dumps(schema.body)) for schema in schemas]
        assert [schema.status for schema in schemas] == [200, 200, 200]
        assert [bool(found) for found in names] == [True, False, True]


def test_a_record_that_names_another_tenants_object_reads_and_deletes_nothing(
    tenancy: Tenancy, shop: SqlAddress, s3_client: S3Client
) -> None:
    with two_tenants(tenancy, shop) as (mine, theirs):
        prefix = mine.place.tenant_id
        answers = []
        for number, path in enumerate(
            (
                theirs.job["resultPath"],
                f"{prefix}/external-data/none.json",
                f"{prefix}/../{theirs.job['resultPath']}",
            )
        ):
            posted = mine.api.post_job(
                FIELDS, {"sales_db": {"orders": {"id": {"lt": [9007199254741000 + number]}}}}
            )
            job_id = mine.api.wait_for_job(posted.body["jobId"])["id"]
            with pymongo.MongoClient[dict[str, Any]](tenancy.mongo_uri) as client:
                client[mine.place.database]["job"].update_many({}, {"$set": {"result_path": path}})
            result = f"/v1/fetcher/{job_id}/result"
            answers.append(
                [
                    told(mine.api.call(method, f"{result}{suffix}"), path)
                    for method, suffix in (("GET", ""), ("GET", "/preview"), ("DELETE", ""))
                ]
            )
        assert answers[0] == answers[1] == answers[2]
        assert answers[0][0][0] == 404
        s3_client.head_object(Bucket=tenancy.bucket, Key=theirs.job["resultPath"])
        unchanged(theirs)


@pytest.mark.parametrize("tries", [11])
def test_one_tenants_tries_are_not_counted_for_another(
    tenancy: Tenancy, shop: SqlAddress, tries: int
) -> None:
    with two_tenants(tenancy, shop) as (mine, theirs):
        statuses = [
            mine.api.call("POST", f"/v1/management/connections/{mine.connection}/test").status
            for _ in range(tries)
        ]
        assert statuses[-1] == 429
        answer = theirs.api.call("POST", f"/v1/management/connections/{theirs.connection}/test")
        assert answer.status == 200
