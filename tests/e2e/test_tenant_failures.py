"""What fails for one tenant, or between us and the Tenant Manager, is nobody else's."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from tests.e2e import broker
from tests.e2e.cluster import Api, postgres_connection
from tests.e2e.tenancy import WORK_QUEUE, Tenancy, TenantApi, TenantPlace
from tests.servers.addresses import SqlAddress
from tests.servers.processes import free_port
from tests.servers.tenant_manager import broker_at, mongo_at, status
from tests.servers.waiting import eventually_sync

FIELDS = {"sales_db": {"orders": ["id"]}}
FIRST_ID = 9007199254740994
_numbers = count(1)


def prepared(api: TenantApi, place: TenantPlace, shop: SqlAddress) -> Api:
    own = api.of(place.tenant_id)
    assert own.connect(postgres_connection(shop)).status == 201
    return own


def filters() -> object:
    """Others each time: the same request again would be answered with the job that was."""
    return {"sales_db": {"orders": {"id": {"lt": [FIRST_ID + next(_numbers)]}}}}


def completes(own: Api) -> None:
    posted = own.post_job(FIELDS, filters())
    assert posted.status == 202, posted.body
    assert own.wait_for_job(posted.body["jobId"])["status"] == "completed"


def consumers(place: TenantPlace) -> int:
    return broker.consumer_count(place.vhost.url, WORK_QUEUE)


def has_consumers(place: TenantPlace, count: int) -> None:
    eventually_sync(
        lambda: consumers(place) == count,
        deadline_seconds=20,
        what=f"{place.tenant_id} has {count} consumers",
    )


def broken_broker(tenancy: Tenancy, place: TenantPlace, how: str) -> Mapping[str, Any]:
    """What the Tenant Manager says of a broker that does not work."""
    right = broker_at(place.vhost.url, place.vhost.name)
    return {
        "no such virtual host": {**right, "vhost": f"{place.vhost.name}-gone"},
        "wrong password": {**right, "password": "wrong"},
        "nobody listens": {**right, "port": free_port()},
    }[how]


@pytest.mark.parametrize("how", ["no such virtual host", "wrong password", "nobody listens"])
def test_a_tenant_without_its_broker_delays_its_own_jobs_alone(
    tenancy: Tenancy, shop: SqlAddress, how: str
) -> None:
    good, bad = tenancy.add("good"), tenancy.add("bad")
    tenancy.tell(bad, broker=broken_broker(tenancy, bad, how))
    with tenancy.process("all") as (process, api):
        other = prepared(api, bad, shop)
        posted = other.post_job(FIELDS, filters())
        assert posted.status == 202, posted.body
        completes(prepared(api, good, shop))
        job_id = posted.body["jobId"]
        assert other.job(job_id)["status"] == "pending"
        tenancy.tell(bad)
        assert tenancy.publish(bad.tenant_id, "tenant.credentials.rotated") >= 1
        assert other.wait_for_job(job_id)["status"] == "completed"
        for place in (good, bad):
            [event] = place.events(1)
            assert event.header("ce-tenantid") == place.tenant_id
        assert process.exit_code is None


def test_a_tenant_without_its_database_gets_503_and_the_other_works(
    tenancy: Tenancy, shop: SqlAddress
) -> None:
    good, bad = tenancy.add("good"), tenancy.add("bad")
    nowhere = {**mongo_at(tenancy.mongo_uri, bad.database), "port": free_port()}
    tenancy.tell(bad, mongo=nowhere)
    with tenancy.process("all") as (process, api):
        refused = api.of(bad.tenant_id).connect(postgres_connection(shop))
        assert refused.status == 503, refused.body
        completes(prepared(api, good, shop))
        tenancy.tell(bad)
        assert tenancy.publish(bad.tenant_id, "tenant.credentials.rotated") >= 1
        own = api.of(bad.tenant_id)
        eventually_sync(
            lambda: own.connect(postgres_connection(shop)).status == 201,
            deadline_seconds=20,
            what="the database that it has now",
        )
        completes(own)
        assert process.exit_code is None


def test_a_tenant_without_a_place_is_served_nowhere(tenancy: Tenancy, shop: SqlAddress) -> None:
    """An identity without a database is an error, never a shared one."""
    good, bad = tenancy.add("good"), tenancy.add("bad")
    tenancy.tell(bad, mongo=None)
    with tenancy.process("all") as (_, api):
        answer = api.of(bad.tenant_id).connect(postgres_connection(shop))
        assert (answer.status, answer.body["code"]) == (503, "SERVICE_UNAVAILABLE")
        completes(prepared(api, good, shop))


@pytest.mark.parametrize(
    "event", ["tenant.suspended", "tenant.service.suspended", "tenant.service.purged"]
)
def test_a_tenant_that_is_suspended_really_stops_and_may_come_back(
    tenancy: Tenancy, shop: SqlAddress, event: str
) -> None:
    good, bad = tenancy.add("good"), tenancy.add("bad")
    with tenancy.process("all") as (_, api):
        own = prepared(api, bad, shop)
        completes(own)
        has_consumers(bad, 1)
        tenancy.tell(bad, status="suspended")
        assert tenancy.publish(bad.tenant_id, event) >= 1
        has_consumers(bad, 0)
        answer = own.call("GET", "/v1/management/connections")
        assert (answer.status, answer.body["code"]) == (403, "0131")
        completes(prepared(api, good, shop))
        tenancy.tell(bad)
        assert tenancy.publish(bad.tenant_id, "tenant.service.reactivated") >= 1
        has_consumers(bad, 1)
        completes(own)


def test_a_tenant_that_is_listed_no_more_stops_without_any_event(tenancy: Tenancy) -> None:
    kept, gone = tenancy.add("kept"), tenancy.add("gone")
    with tenancy.process("worker"):
        has_consumers(gone, 1)
        tenancy.manager_double.remove(gone.tenant_id)
        has_consumers(gone, 0)
        assert consumers(kept) == 1
        tenancy.tell(gone)
        has_consumers(gone, 1)


def test_tenants_go_on_while_the_tenant_manager_is_away(tenancy: Tenancy, shop: SqlAddress) -> None:
    known, unknown = tenancy.add("known"), tenancy.add("unknown")
    tenancy.changes["MULTI_TENANT_CIRCUIT_BREAKER_TIMEOUT_SEC"] = "2"
    tenancy.manager_double.remove(unknown.tenant_id)
    with tenancy.process("all") as (_, api):
        own = prepared(api, known, shop)
        tenancy.manager_double.fail(status(502))
        completes(own)
        for _ in range(6):
            answer = api.of(unknown.tenant_id).call("GET", "/v1/management/connections")
            assert (answer.status, answer.body["code"]) == (503, "SERVICE_UNAVAILABLE")
        completes(own)
        tenancy.manager_double.fail(None)
        code = eventually_sync(
            lambda: served(api, unknown, 404), deadline_seconds=20, what="its word is heard again"
        )
        assert code == "TENANT_NOT_FOUND"


def served(api: TenantApi, place: TenantPlace, wanted: int) -> str | None:
    answer = api.of(place.tenant_id).call("GET", "/v1/management/connections")
    return str(answer.body["code"]) if answer.status == wanted else None
