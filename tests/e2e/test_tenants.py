"""Tenants of one manager and one worker, each with its own database, virtual host and objects."""

import json

from mypy_boto3_s3 import S3Client

from fetcher.consumer import open_result, verify_event
from tests.e2e.cluster import postgres_connection
from tests.e2e.tenancy import EXCHANGE, Tenancy, TenantPlace, result_of
from tests.servers.addresses import SqlAddress
from tests.servers.processes import free_port
from tests.servers.tenant_manager import broker_at

FIELDS = {"sales_db": {"orders": ["id", "total"]}}
UNKNOWN = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
FILTERS = {"sales_db": {"orders": {"total": {"gte": [1099.00]}}}}


def test_jobs_of_two_tenants_stay_apart_from_request_to_event(
    tenancy: Tenancy, shop: SqlAddress, s3_client: S3Client
) -> None:
    places = [tenancy.add("acme"), tenancy.add("Beta_2")]
    with tenancy.process("manager") as (_, api), tenancy.process("worker"):
        jobs = {}
        for place in places:
            own = api.of(place.tenant_id)
            assert own.connect(postgres_connection(shop)).status == 201
            posted = own.post_job(FIELDS, FILTERS)
            assert posted.status == 202, posted.body
            jobs[place.tenant_id] = posted.body["jobId"]
        for place in places:
            job = api.of(place.tenant_id).wait_for_job(jobs[place.tenant_id])
            assert job["status"] == "completed", job
            assert job["resultPath"] == f"{place.tenant_id}/external-data/{job['id']}.json"
            check_event_and_result(tenancy, place, s3_client, job["id"])
        for place, other in (places, reversed(places)):
            foreign = api.of(place.tenant_id).call("GET", f"/v1/fetcher/{jobs[other.tenant_id]}")
            unknown = api.of(place.tenant_id).call("GET", f"/v1/fetcher/{UNKNOWN}")
            assert foreign.status == unknown.status == 404
            assert foreign.body["code"] == unknown.body["code"]


def check_event_and_result(
    tenancy: Tenancy, place: TenantPlace, s3_client: S3Client, job_id: str
) -> None:
    [event] = place.events(1)
    assert event.header("ce-tenantid") == event.header("X-Tenant-ID") == place.tenant_id
    assert event.header("ce-id") == f"fetcher.job.completed.{job_id}"
    verify_event(
        event.headers, event.body, EXCHANGE, "job.completed", key=tenancy.keys.external_hmac
    )
    result = result_of(event)
    assert result["path"] == f"{place.tenant_id}/external-data/{job_id}.json"
    sealed = s3_client.get_object(Bucket=tenancy.bucket, Key=result["path"])["Body"].read()
    with open_result(
        sealed,
        storage_key=tenancy.keys.storage,
        hmac_key=tenancy.keys.external_hmac,
        expected_hmac=result["hmac"],
        expected_size=result["sizeBytes"],
    ) as opened:
        assert json.loads(opened.read()) == {
            "sales_db": {"orders": [{"id": 9007199254741993, "total": "1100.00"}]}
        }


def test_readiness_of_the_process_and_of_each_tenant(tenancy: Tenancy) -> None:
    well, ill = tenancy.add("well"), tenancy.add("ill")
    nowhere = {**broker_at(ill.vhost.url, ill.vhost.name), "port": free_port()}
    tenancy.tell(ill, broker=nowhere)
    with tenancy.process("manager") as (_, api), tenancy.process("worker") as (_, worker):
        for each, store in ((api, "redis"), (worker, "s3")):
            answer = each.nobody.call("GET", "/readyz")
            assert answer.status == 200, answer.body
            checks = answer.body["checks"]
            expected = {"mongodb", "rabbitmq", "tenant_manager", "multi_tenant_redis"}
            assert checks.keys() == expected | ({store} if store == "s3" else set())
            assert checks["mongodb"]["status"] == checks["rabbitmq"]["status"] == "n/a"
            checks["tenant_manager"].pop("latency_ms", None)
            assert checks["tenant_manager"] == {
                "status": "up",
                "tls": False,
                "reason": "configuration only",
            }
            found = each.nobody.call("GET", f"/readyz/tenant/{well.tenant_id}")
            assert found.status == 200, found.body
            assert found.body["tenant_id"] == well.tenant_id
            assert {name: check["status"] for name, check in found.body["checks"].items()} == {
                "mongodb": "up",
                "rabbitmq": "up",
            }
            down = each.nobody.call("GET", f"/readyz/tenant/{ill.tenant_id}")
            assert (down.status, down.body["checks"]["rabbitmq"]["status"]) == (503, "down")
            nobody = each.nobody.call("GET", "/readyz/tenant/nobody-9")
            assert (nobody.status, nobody.body) == (
                404,
                {"error": "tenant not found", "tenant_id": "nobody-9"},
            )
            text = each.nobody.text("/metrics")
            assert "fetcher_tenants_active" in text
            assert well.tenant_id not in text


def test_readiness_asks_the_tenant_manager_nothing(tenancy: Tenancy) -> None:
    with tenancy.process("manager") as (_, api):
        tenancy.manager_double.forget_requests()
        assert api.nobody.call("GET", "/readyz").status == 200
        assert tenancy.manager_double.requests() == []
