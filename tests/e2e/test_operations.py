"""What operators see of a whole life: of the embedded process, and of a manager beside a worker."""

import json
import signal
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Api, Cluster, embedded, postgres_connection
from tests.e2e.test_embedded import FIELDS, make_shop, register
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

LETTERS = "/v1/operations/dead-letters"


def told(api: Api, what: str) -> Any:
    answer = api.call("GET", f"/v1/operations/{what}")
    assert answer.status == 200, answer.body
    return answer.body


def ended_last_hour(api: Api) -> dict[str, int]:
    minutes = told(api, "activity")["minutes"]
    assert len(minutes) == 60
    states = ("completed", "failed", "cancelled")
    return {state: sum(each[state] for each in minutes) for state in states}


def a_dead_letter(folder: Path, job_id: str) -> None:
    """As the embedded queue leaves one: the message of a job, not genuine."""
    line = {"exchange": "fetcher.dlx", "routingKey": "fetcher.dlq.key", "headers": {}, "body": "{}"}
    line["headers"] = {"jobId": job_id, "x-fetcher-reject-reason": "bad_signature"}
    with (folder / "fetcher-data" / "dead-letters.jsonl").open("a") as letters:
        letters.write(json.dumps(line) + "\n")


def test_one_process_tells_of_its_parts_and_its_jobs(tmp_path: Path) -> None:
    with embedded(tmp_path) as (process, api):
        make_shop(tmp_path)
        register(api, password="hunter2-canary")
        assert api.wait_for_job(api.post_job(FIELDS).body["jobId"])["status"] == "completed"

        dependencies = told(api, "dependencies")
        assert dependencies["process"]["pid"] == process.pid
        assert dependencies["process"]["role"] == "all"
        assert {each["name"]: each["status"] for each in dependencies["dependencies"]} == {
            "record_store": "up",
            "queue": "up",
            "object_store": "up",
        }
        assert all(each["history"][-1]["probes"] >= 2 for each in dependencies["dependencies"])

        actors = {each["name"]: each for each in told(api, "actors")["actors"]}
        assert {"http", "dispatcher", "intake", "extractor-1", "reaper", "probes"} <= set(actors)
        assert {each["state"] for each in actors.values()} <= {"running", "ended"}
        assert {each["restarts"] for each in actors.values()} == {0}

        jobs = told(api, "jobs")
        assert (jobs["counts"]["completed"], jobs["running"], jobs["waiting"]) == (1, [], [])
        assert ended_last_hour(api) == {"completed": 1, "failed": 0, "cancelled": 0}
        assert told(api, "outbox")["dispatchedJobs"] == 0
        assert told(api, "breakers")["connections"] == []

        a_dead_letter(tmp_path, "0195a3f2-6b1e-7c40-9d52-3f8e0a6b7c11")
        queues = {each["purpose"]: each["ready"] for each in told(api, "queues")["queues"]}
        assert queues == {"work": 0, "dead_letters": 1}
        [letter] = told(api, "dead-letters")["letters"]
        assert (letter["genuine"], letter["reason"]) == (False, "bad_signature")
        redriven = api.call("POST", f"{LETTERS}/redrive", {})
        assert (redriven.status, redriven.body["dispatched"]) == (200, 0)
        assert [each["result"] for each in redriven.body["letters"]] == ["unverified"]
        [entry] = told(api, "audit?action=dlq.redriven")["items"]
        assert (entry["actor"], entry["outcome"]) == ("anonymous", "succeeded")
        older = told(api, "audit?limit=1")
        assert [each["id"] for each in older["items"]] == [entry["id"]]
        following = told(api, f"audit?limit=1&cursor={older['nextCursor']}")["items"]
        assert [each["action"] for each in following] == ["job.created"]
        looks = ("dependencies", "queues", "outbox", "jobs", "activity", "breakers", "actors")
        shown = json.dumps([told(api, what) for what in (*looks, "dead-letters")])
        key = (tmp_path / "fetcher-data" / "master.key").read_text().strip()
        assert "hunter2" not in shown
        assert key not in shown

        process.send(signal.SIGTERM)
        eventually_sync(
            lambda: told(api, "dependencies")["draining"], deadline_seconds=5, what="it drains"
        )
        assert process.wait_exit(deadline_seconds=30) == 0


def test_a_manager_tells_of_jobs_queues_and_breakers_of_everybody(
    cluster: Cluster, shop: SqlAddress
) -> None:
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        job_id = api.post_job({"sales_db": {"orders": ["id"]}}).body["jobId"]
        eventually_sync(
            lambda: told(api, "outbox")["dispatchedJobs"] == 1,
            deadline_seconds=15,
            what="the job is dispatched",
        )
        [waiting] = told(api, "jobs")["waiting"]
        assert (waiting["id"], waiting["connections"]) == (job_id, ["sales_db"])
        work, dead = told(api, "queues")["queues"]
        assert (work["name"], work["ready"], work["consumers"]) == (cluster.work_queue, 1, 0)
        assert dead["purpose"] == "dead_letters"
        assert {each["name"]: each["state"] for each in told(api, "breakers")["adapters"]} == {
            "rabbitmq_work": "closed",
            "rabbitmq_events": "closed",
            "rabbitmq_dead_letters": "closed",
        }
        with cluster.worker():
            assert api.wait_for_job(job_id)["status"] == "completed"
            assert ended_last_hour(api) == {"completed": 1, "failed": 0, "cancelled": 0}
            assert told(api, "dependencies")["process"]["role"] == "manager"
