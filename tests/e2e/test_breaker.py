"""A wrong password, from the jobs that meet it to the ones that wait until it is mended."""

from pathlib import Path
from typing import Any

from tests.e2e.cluster import Api, Cluster, embedded
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

FIELDS: dict[str, Any] = {"stock_db": {"items": ["id"]}}
REASON = "connection stock_db is down"


def post(api: Api, number: int) -> str:
    """A job that no other is a duplicate of."""
    posted = api.post_job(FIELDS, {"stock_db": {"items": {"id": {"gt": [-number]}}}})
    assert posted.status == 202, posted.body
    return str(posted.body["jobId"])


def wait_until_parked(api: Api, job_id: str) -> None:
    eventually_sync(
        lambda: api.job(job_id).get("waitingReason") == REASON,
        deadline_seconds=20,
        what="the job waits",
    )


def mend_a_wrong_password(api: Api, stock: SqlAddress) -> None:
    created = api.connect(
        {
            "configName": "stock_db",
            "type": "MYSQL",
            "host": stock.host,
            "port": stock.port,
            "databaseName": stock.database,
            "userName": stock.user,
            "password": "not the one",
        }
    )
    assert created.status == 201, created.body
    one = f"/v1/management/connections/{created.body['id']}"
    for number in range(5):
        job = api.wait_for_job(post(api, number))
        assert (job["status"], job["error"]["stage"], job["error"]["reason"]) == (
            "failed",
            "auth",
            "auth",
        )
    waiting = [post(api, number) for number in range(5, 8)]
    for job_id in waiting:
        wait_until_parked(api, job_id)
        assert api.job(job_id)["status"] == "pending"
    cancelled = api.call("POST", f"/v1/fetcher/{waiting[2]}/cancel")
    assert (cancelled.status, cancelled.body["status"]) == (200, "cancelled")
    mended = api.call("PATCH", one, {"password": stock.password})
    assert mended.status == 200, mended.body
    # by themselves they would not be tried again for 15 seconds at least
    for job_id in waiting[:2]:
        job = api.wait_for_job(job_id, deadline_seconds=10)
        assert (job["status"], job["rowCount"]) == ("completed", 2), job
        assert "waitingReason" not in job
        assert [each.get("errorCode") for each in job["attempts"]] == ["parked", None]
    job = api.wait_for_job(post(api, 8))
    assert (job["status"], len(job["attempts"])) == ("completed", 1)


def test_a_wrong_password_never_blocks_its_own_repair(tmp_path: Path, stock: SqlAddress) -> None:
    with embedded(tmp_path, JOB_PREFLIGHT_TEST="false") as (process, api):
        mend_a_wrong_password(api, stock)
        log = process.log()
    assert log.count("breaker_opened") == 1
    assert log.count("breaker_closed") == 1
    assert stock.password not in log


def test_replicas_agree_on_a_connection_that_is_down(cluster: Cluster, stock: SqlAddress) -> None:
    cluster.changes["JOB_PREFLIGHT_TEST"] = "false"
    with (
        cluster.manager() as (_, api),
        cluster.worker("one") as (first, _),
        cluster.worker("two") as (second, _),
    ):
        mend_a_wrong_password(api, stock)
        assert (first.log() + second.log()).count("breaker_opened") == 1
