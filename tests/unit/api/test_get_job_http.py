"""GET /v1/fetcher/{id}: spec rest-api 9.8 and 17.5."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.jobs import FailureFacts, Job, JobStatus, ResultFacts
from fetcher_engine import SourceNotes
from tests.unit.api.harness import (
    JOBS,
    START,
    a_job,
    an_api,
    end,
)


async def shown(job: Job) -> dict[str, Any]:
    api = an_api()
    await api.records.jobs.insert(replace(job, status=JobStatus.PENDING))
    await end(api, job, job.status)
    state = api.records.jobs._state  # type: ignore[attr-defined] # the memory store's own state
    state.jobs[job.id].job = job
    answered = await api.get(f"{JOBS}/{job.id}")
    assert answered.status == 200
    body: dict[str, Any] = answered.json
    return body


async def test_new_job_shows_no_result() -> None:
    job = a_job()
    assert await shown(job) == {
        "id": str(job.id),
        "metadata": {"source": "acme-reports"},
        "mappedFields": {"sales_db": {"orders": ["id"]}},
        "status": "pending",
        "requestHash": "ab" * 32,
        "createdAt": "2026-03-14T09:26:53.123456Z",
    }


async def test_completed_job_shows_its_result() -> None:
    facts = ResultFacts(
        path="external-data/x.json",
        hmac="cd",
        size_bytes=9,
        row_count=1,
        key_version="1",
        source_notes={"sales_db": SourceNotes(has_snapshot=False, replaced_characters=12)},
    )
    filters = {"sales_db": {"orders": {"id": {"in": (1, None)}}}}
    job = a_job(
        status=JobStatus.COMPLETED,
        completed_at=START + timedelta(seconds=1),
        result=facts,
        filters=filters,
    )
    body = await shown(job)
    assert (body["resultPath"], body["resultHmac"]) == ("external-data/x.json", "cd")
    assert body["sources"] == {"sales_db": {"snapshot": False, "replacedCharacters": 12}}
    assert body["completedAt"] == "2026-03-14T09:26:54.123456Z"
    assert body["filters"] == {"sales_db": {"orders": {"id": {"in": [1, None]}}}}


async def test_failed_job_explains_itself() -> None:
    failure = FailureFacts(
        message="sales_db: connect failed at tls: certificate expired",
        code="connect",
        source="sales_db",
        stage="tls",
        reason="certificate expired",
    )
    body = await shown(a_job(status=JobStatus.FAILED, completed_at=START, failure=failure))
    assert body["metadata"]["error"] == failure.message
    assert body["error"] == {
        "message": failure.message,
        "code": "connect",
        "source": "sales_db",
        "stage": "tls",
        "reason": "certificate expired",
    }
    assert not {"resultPath", "sources"} & set(body)


async def test_nothing_is_said_of_sources_of_which_there_is_nothing_to_say() -> None:
    facts = ResultFacts(path="x.json", hmac="cd", size_bytes=9, row_count=1, key_version="1")
    body = await shown(a_job(status=JobStatus.COMPLETED, completed_at=START, result=facts))
    assert "sources" not in body
    facts = replace(facts, source_notes={"sales_db": SourceNotes(replaced_characters=1)})
    body = await shown(a_job(status=JobStatus.COMPLETED, completed_at=START, result=facts))
    assert body["sources"] == {"sales_db": {"replacedCharacters": 1}}


async def test_bookkeeping_is_never_shown() -> None:
    marks = {"terminalEventPending": True, "terminalEventStatus": "x", "terminalEventPayload": "{}"}
    assert "metadata" not in await shown(a_job(metadata=marks))


async def test_unknown_job_bad_id_and_store_that_is_away() -> None:
    api = an_api()
    unknown = await api.get(f"{JOBS}/{new_job_id()}")
    assert unknown.problem == (404, "FET-1001", "Entity Not Found")
    bad = await api.get(f"{JOBS}/nope")
    assert bad.problem == (400, "FET-0404", "Invalid Path Parameter")
    assert bad.json["message"] == "invalid job id"

    class Away:
        async def get(self, job_id: JobId) -> Job | None:
            raise PortUnavailable("down")

    away = await an_api(jobs=Away()).get(f"{JOBS}/{new_job_id()}")
    assert away.problem == (503, "FET-0003", "Service Unavailable")
