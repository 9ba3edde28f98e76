"""The operators' routes: what they tell, what they bound, what they do."""

from datetime import timedelta

import pytest
import trio
from trio.testing import MockClock

from fetcher.actors.board import ActorBoard
from fetcher.actors.probe_history import ProbeHistory
from fetcher.api.application import manager_routes
from fetcher.api.services import ReadinessAnswer
from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import EventMark, FailureFacts, Job, JobStatus, TerminalOutcome
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import ProbeResult, ProbeStatus
from tests.unit.api.harness import START, Api, a_connection, a_job, an_api
from tests.unit.api.operations_room import OPERATIONS, PROCESS_JSON, LetterBox, a_letter, told

UP = ProbeResult(status=ProbeStatus.UP, latency_ms=4, tls=True)
DOWN = ProbeResult(
    status=ProbeStatus.DOWN, latency_ms=1900, error="timeout", breaker_state="closed"
)
MARK = EventMark(status="failed", payload="{}", time=START)
FAILURE = FailureFacts(message="sales_db: connect failed", code="connect", source="sales_db")


async def claimed(api: Api, job: Job, *, owner: str = "pod-2:9") -> Claimed:
    claim = await api.records.leases.claim(job.id, owner=owner, lease_seconds=60)
    assert isinstance(claim, Claimed)
    return claim


# --- of this process --------------------------------------------------------------------------


async def test_dependencies_are_told_with_their_last_hour(autojump_clock: MockClock) -> None:
    now = START
    history = ProbeHistory(lambda: now)
    history.observe({"mongodb": DOWN, "redis": UP})
    history.observe({"mongodb": UP, "redis": UP})
    now = START + timedelta(minutes=1)
    history.observe({"mongodb": UP, "redis": DOWN})
    api = an_api(operated={"dependencies": history.known})
    assert await told(api, "dependencies") == {
        "process": PROCESS_JSON,
        "draining": False,
        "dependencies": [
            {
                "name": "mongodb",
                "status": "up",
                "optional": False,
                "probedAt": "2026-03-14T09:27:53.123456Z",
                "latencyMs": 4,
                "tls": True,
                "history": [
                    {
                        "minute": "2026-03-14T09:26:00Z",
                        "probes": 2,
                        "failures": 1,
                        "slowestMs": 1900,
                        "error": "timeout",
                    },
                    {"minute": "2026-03-14T09:27:00Z", "probes": 1, "failures": 0, "slowestMs": 4},
                ],
            },
            {
                "name": "redis",
                "status": "down",
                "optional": True,
                "probedAt": "2026-03-14T09:27:53.123456Z",
                "latencyMs": 1900,
                "error": "timeout",
                "breakerState": "closed",
                "history": [
                    {"minute": "2026-03-14T09:26:00Z", "probes": 2, "failures": 0, "slowestMs": 4},
                    {
                        "minute": "2026-03-14T09:27:00Z",
                        "probes": 1,
                        "failures": 1,
                        "slowestMs": 1900,
                        "error": "timeout",
                    },
                ],
            },
        ],
    }


async def test_dependencies_are_probed_for_the_answer_unless_the_process_drains() -> None:
    asked: list[bool] = []
    history = ProbeHistory(lambda: START)

    async def readiness() -> ReadinessAnswer:
        await trio.lowlevel.checkpoint()
        asked.append(True)
        history.observe({"mongodb": UP})
        return ReadinessAnswer(draining=True)

    api = an_api(operated={"dependencies": history.known})
    object.__setattr__(api.services.system, "readiness", readiness)
    body = await told(api, "dependencies")
    assert (asked, body["draining"], len(body["dependencies"])) == ([True], True, 1)


def test_history_is_an_hour_of_minutes() -> None:
    now = START
    history = ProbeHistory(lambda: now)
    for minute in range(100):
        now = START + timedelta(minutes=minute)
        history.observe({"mongodb": UP})
    [known] = history.known()
    assert len(known.minutes) == 60
    assert known.minutes[-1].minute == now.replace(second=0, microsecond=0)
    now += timedelta(minutes=59)
    [known] = history.known()
    assert [each.minute for each in known.minutes] == [known.minutes[-1].minute]
    now += timedelta(minutes=2)
    [known] = history.known()
    assert (known.minutes, known.last) == ([], UP)


async def test_actors_are_told_with_their_restarts() -> None:
    board = ActorBoard(lambda: START)
    for actor in ("http", "dispatcher", "breaker_count", "topology"):
        board.began(actor)
    for _ in range(2):
        board.crashed("dispatcher", "KeyError")
        board.began("dispatcher")
    board.crashed("breaker_count", "ValueError")
    board.gave_up("breaker_count")
    board.ended("breaker_count")
    board.ended("topology")
    api = an_api(operated={"actors": board.states})
    crashed = {"lastCrash": "KeyError", "lastCrashAt": rfc3339(START)}
    assert await told(api, "actors") == {
        "process": PROCESS_JSON,
        "actors": [
            {"name": "http", "state": "running", "restarts": 0},
            {"name": "dispatcher", "state": "running", "restarts": 2, **crashed},
            {
                "name": "breaker_count",
                "state": "gave_up",
                "restarts": 1,
                "lastCrash": "ValueError",
                "lastCrashAt": rfc3339(START),
            },
            {"name": "topology", "state": "ended", "restarts": 0},
        ],
    }


async def test_breakers_of_adapters_and_of_connections_are_told() -> None:
    api = an_api()
    connection = a_connection()
    down = failed(connection, SourceDown(stage="tcp", reason="refused"))
    for _ in range(FAILURES_TO_OPEN):
        await api.records.breakers.change(connection.id, down)
    [breaker] = await api.records.breakers.list_open(limit=5)
    assert breaker.retry_at is not None
    assert await told(api, "breakers") == {
        "process": PROCESS_JSON,
        "adapters": [{"name": "rabbitmq_work", "state": "closed"}],
        "connections": [
            {
                "connectionId": str(connection.id),
                "configName": "sales_db",
                "stage": "tcp",
                "reason": "refused",
                "failures": 5,
                "openings": 1,
                "changedAt": rfc3339(breaker.changed_at),
                "retryAt": rfc3339(breaker.retry_at),
            }
        ],
        "openConnections": 1,
    }


# --- of everybody -----------------------------------------------------------------------------


async def test_queues_are_told_with_their_depth() -> None:
    box = LetterBox([a_letter(a_job(), at=START)])
    assert await told(an_api(box=box), "queues") == {
        "queues": [
            {"name": "work", "purpose": "work", "ready": 3, "consumers": 2},
            {"name": "fetcher.dlq", "purpose": "dead_letters", "ready": 1},
        ]
    }


async def test_jobs_are_told_by_what_they_wait_for_and_who_works_on_them() -> None:
    api = an_api()
    running, waiting, parked, ended = (
        a_job(request_hash=f"{n:064x}", created_at=START - timedelta(seconds=60 - n))
        for n in range(4)
    )
    for job in (running, waiting, parked, ended):
        await api.records.jobs.insert(job)
    claim = await claimed(api, running)
    until = api.services.now() + timedelta(seconds=30)
    lease = (await claimed(api, parked)).lease
    assert await api.records.leases.park(lease, until=until, reason="sales_db is down")
    outcome = TerminalOutcome(status=JobStatus.FAILED, event=MARK, failure=FAILURE)
    await api.records.leases.finish((await claimed(api, ended)).lease, outcome)

    body = await told(api, "jobs")
    assert body["counts"] == {
        "pending": 2,
        "processing": 1,
        "completed": 0,
        "failed": 1,
        "cancelled": 0,
        "parked": 1,
        "countedUpTo": 100_000,
    }
    [shown] = body["running"]
    assert claim.job.lease_until is not None
    assert shown == {
        "id": str(running.id),
        "status": "processing",
        "source": "acme-reports",
        "connections": ["sales_db"],
        "createdAt": rfc3339(running.created_at),
        "startedAt": shown["startedAt"],
        "owner": "pod-2:9",
        "leaseUntil": rfc3339(claim.job.lease_until),
        "attempt": 1,
        "takeovers": 0,
        "rows": 0,
        "bytes": 0,
    }
    assert [(each["id"], each.get("waitingReason")) for each in body["waiting"]] == [
        (str(waiting.id), None),
        (str(parked.id), "sales_db is down"),
    ]
    [failed_job] = body["failed"]
    assert failed_job["error"] == {
        "message": "sales_db: connect failed",
        "code": "connect",
        "source": "sales_db",
    }
    assert "completedAt" in failed_job


async def test_of_failed_jobs_those_that_ended_last_are_told() -> None:
    api = an_api()
    jobs = [
        a_job(request_hash=f"{n:064x}", created_at=START - timedelta(seconds=60 - n))
        for n in range(3)
    ]
    for job in jobs:
        await api.records.jobs.insert(job)
    for job in reversed(jobs):
        outcome = TerminalOutcome(status=JobStatus.FAILED, event=MARK, failure=FAILURE)
        await api.records.leases.finish((await claimed(api, job)).lease, outcome)
    body = await told(api, "jobs?limit=2")
    assert [each["id"] for each in body["failed"]] == [str(job.id) for job in jobs[:2]]


@pytest.mark.parametrize(
    ("limit", "code"), [("0", "FET-0405"), ("x", "FET-0405"), ("101", "FET-0406")]
)
@pytest.mark.parametrize("what", ["jobs", "dead-letters"])
async def test_lists_are_bounded(what: str, limit: str, code: str) -> None:
    answered = await an_api().get(f"{OPERATIONS}/{what}?limit={limit}")
    assert (answered.status, answered.json["code"]) == (400, code)


async def test_lists_have_as_many_as_asked_for() -> None:
    api = an_api()
    for n in range(30):
        await api.records.jobs.insert(a_job(request_hash=f"{n:064x}"))
    assert len((await told(api, "jobs"))["waiting"]) == 20
    assert len((await told(api, "jobs?limit=3"))["waiting"]) == 3


async def test_outbox_is_told_with_its_age(autojump_clock: MockClock) -> None:
    api = an_api()
    assert await told(api, "outbox") == {
        "pendingEvents": 0,
        "oldestEventSeconds": 0.0,
        "undispatchedJobs": 0,
        "oldestUndispatchedSeconds": 0.0,
        "dispatchedJobs": 0,
        "oldestDispatchedSeconds": 0.0,
    }
    job, dispatched = a_job(), a_job(request_hash="cd" * 32)
    for each in (job, dispatched):
        await api.records.jobs.insert(each)
    await api.records.jobs.request_cancel(job.id, MARK)
    [claim] = await api.records.dispatch.claim_due(limit=5, lease_seconds=5)
    await api.records.dispatch.mark_dispatched({claim.job.id: claim.dispatch_seq})
    await trio.sleep(601)
    body = await told(api, "outbox")
    assert (body["pendingEvents"], body["undispatchedJobs"], body["dispatchedJobs"]) == (1, 0, 1)
    assert 600 < body["oldestEventSeconds"] < 602
    assert 600 < body["oldestDispatchedSeconds"] < 602


async def test_activity_is_an_hour_of_minutes(autojump_clock: MockClock) -> None:
    api = an_api()
    minutes = (await told(api, "activity"))["minutes"]
    assert [each["minute"] for each in (minutes[0], minutes[-1])] == [
        "2026-03-14T08:27:00Z",
        "2026-03-14T09:26:00Z",
    ]
    assert len(minutes) == 60
    nothing = {"completed": 0, "failed": 0, "cancelled": 0}
    assert all(each == {"minute": each["minute"], **nothing} for each in minutes)
    for seconds in (1, 2):
        job = a_job(request_hash=f"{seconds:064x}")
        await api.records.jobs.insert(job)
        lease = (await claimed(api, job)).lease
        await trio.sleep(seconds)
        outcome = TerminalOutcome(status=JobStatus.FAILED, event=MARK, failure=FAILURE)
        await api.records.leases.finish(lease, outcome)
    assert (await told(api, "activity"))["minutes"][-1] == {
        "minute": "2026-03-14T09:26:00Z",
        **nothing,
        "failed": 2,
        "averageSeconds": 1.5,
        "longestSeconds": 2.0,
    }


@pytest.mark.parametrize(
    ("method", "what", "action"),
    [
        *[
            ("GET", what, "get")
            for what in (
                "dependencies",
                "queues",
                "outbox",
                "jobs",
                "activity",
                "breakers",
                "actors",
                "dead-letters",
            )
        ],
        ("POST", "dead-letters/redrive", "post"),
    ],
)
async def test_operations_are_a_resource_of_their_own(method: str, what: str, action: str) -> None:
    api = an_api()
    document = (await api.get("/openapi.json")).json
    described = document["paths"][f"{OPERATIONS}/{what}"][method.lower()]
    assert described["tags"] == ["Operations"]
    [route] = [
        each
        for each in manager_routes(api.services)
        if (each.method, each.path) == (method, f"{OPERATIONS}/{what}")
    ]
    assert (route.resource, route.action) == ("operations", action)
