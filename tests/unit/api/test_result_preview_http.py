"""GET /v1/fetcher/{id}/result/preview (decisions, "Result over HTTP")."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from fetcher.api.services import HttpSettings
from fetcher.crypto.keys import KeyRing, KeySet
from fetcher.domain.jobs import JobStatus
from tests.unit.api.harness import KEYS, a_job, an_api
from tests.unit.api.results import (
    DOCUMENT,
    MemoryObjects,
    an_api_with_store,
    bucket,
    completed,
    put,
    result_path,
)

UNVERIFIED = (422, "FET-1027", "Result Not Verified")


async def test_first_rows_of_each_table_come_as_they_were_stored() -> None:
    api = an_api_with_store(MemoryObjects(chunk_bytes=7))
    job = await completed(api)
    answered = await api.get(f"{result_path(job)}/preview?rows=1")
    assert answered.status == 200
    assert answered.headers["Cache-Control"] == "no-store"
    assert answered.json == {
        "jobId": str(job.id),
        "limit": 1,
        "rowCounts": {"sales_db": {"orders": 2, "people": 0}},
        "rows": {"sales_db": {"orders": [{"id": 1, "total": "12.50"}], "people": []}},
    }
    whole = await api.get(f"{result_path(job)}/preview")
    assert whole.json["limit"] == 100
    assert DOCUMENT[1:-1] in whole.raw


async def test_numbers_pass_through_no_parser() -> None:
    row = b'{"n":12345678901234567890.10,"d":1e400}'
    api = an_api_with_store()
    job = await completed(api, b'{"db":{"t":[' + row + b"]}}")
    assert row in (await api.get(f"{result_path(job)}/preview")).raw


async def test_preview_is_logged_as_an_access() -> None:
    api = an_api_with_store()
    job = await completed(api)
    with capture_logs() as logs:
        await api.get(f"{result_path(job)}/preview?rows=5")
    [told] = [entry for entry in logs if entry["event"] == "result_previewed"]
    assert (told["job_id"], told["product"], told["rows"]) == (str(job.id), "acme-reports", 5)
    assert "12.50" not in str(logs)


@pytest.mark.parametrize("rows", ["0", "1001", "-1", "x", "1.0", "%D9%A3", "99999", "+1"])
async def test_count_of_rows_is_judged(rows: str) -> None:
    api = an_api_with_store()
    job = await completed(api)
    answered = await api.get(f"{result_path(job)}/preview?rows={rows}")
    assert (answered.status, answered.json["code"]) == (400, "FET-0405")
    assert answered.json["message"] == (
        "invalid query parameter rows: must be a whole number from 1 to 1000"
    )


async def test_nothing_of_a_changed_object_is_shown() -> None:
    api = an_api_with_store()
    job = await completed(api)
    assert job.result is not None
    stored = bucket(api).objects[job.result.path]
    for changed, reason in (
        (stored[:40] + (b"A" if stored[40:41] != b"A" else b"B") + stored[41:], "not_authentic"),
        (stored[:-8], "wrong_size"),
        (stored + b"AAAA", "wrong_size"),
        (b"%" + stored[1:], "not_base64"),
        (b"", "wrong_size"),
    ):
        bucket(api).objects[job.result.path] = changed
        answered = await api.get(f"{result_path(job)}/preview")
        assert answered.problem == UNVERIFIED
        assert answered.json["reason"] == reason


async def test_another_document_s_signature_and_an_unknown_key_are_refused() -> None:
    api = an_api_with_store()
    other = await completed(api, hmac="00" * 32, path="external-data/other.json")
    answered = await api.get(f"{result_path(other)}/preview")
    assert (answered.problem, answered.json["reason"]) == (UNVERIFIED, "wrong_hmac")
    unknown = await completed(api, b'{"k":{}}', key_version="6")
    answered = await api.get(f"{result_path(unknown)}/preview")
    assert (answered.problem, answered.json["reason"]) == (UNVERIFIED, "unknown_key_version")
    layout = await completed(api, b'{"k":7}')
    answered = await api.get(f"{result_path(layout)}/preview")
    assert (answered.problem, answered.json["reason"]) == (UNVERIFIED, "malformed")


async def test_a_result_of_a_former_key_is_shown_until_its_end() -> None:
    until = datetime(2026, 12, 31, tzinfo=UTC)
    ring = KeyRing(
        KeySet.from_master(b"n" * 32, version="8"),
        [KEYS.current],
        previous_until=until,
    )
    for late, answer in ((timedelta(seconds=-1), 200), (timedelta(0), 422), (timedelta(1), 422)):
        api = an_api_with_store(keys=ring, now=lambda late=late: until + late)
        answered = await api.get(f"{result_path(await completed(api))}/preview")
        assert answered.status == answer
        if answer == 422:
            assert (answered.problem, answered.json["reason"]) == (UNVERIFIED, "previous_key_ended")


async def test_large_results_are_not_read_at_all() -> None:
    api = an_api_with_store()
    job = await completed(api, size_bytes=16 * 1024 * 1024 + 1)
    answered = await api.get(f"{result_path(job)}/preview")
    assert answered.problem == (422, "FET-1026", "Result Too Large")
    assert answered.json["sizeBytes"] == 16 * 1024 * 1024 + 1
    assert bucket(api).given_chunks == 0


async def test_sixteen_mebibytes_can_be_previewed() -> None:
    row = b'{"t":"' + b"x" * 1_000_000 + b'"}'
    document = b'{"db":{"t":[' + b",".join([row] * 16) + b"]}}"
    api = an_api_with_store(MemoryObjects(chunk_bytes=1024 * 1024))
    job = await completed(api, document)
    answered = await api.get(f"{result_path(job)}/preview?rows=2")
    assert answered.json["rowCounts"] == {"db": {"t": 16}}
    assert len(answered.raw) < 2_001_000


async def test_preview_can_be_switched_off() -> None:
    api = an_api_with_store(settings=HttpSettings(result_preview=False))
    job = await completed(api)
    answered = await api.get(f"{result_path(job)}/preview")
    assert answered.problem == (403, "FET-0007", "Forbidden")
    assert bucket(api).given_chunks == 0


async def test_no_result_no_preview() -> None:
    api = an_api_with_store()
    running = await put(api, a_job(status=JobStatus.PROCESSING))
    gone = await completed(api)
    bucket(api).objects.clear()
    for job in (running, gone):
        answered = await api.get(f"{result_path(job)}/preview")
        assert answered.problem == (404, "FET-1024", "Result Not Found")


@pytest.mark.parametrize("shows", [True, False])
async def test_the_document_promises_rows_only_where_they_are_shown(shows: bool) -> None:
    document = (await an_api(settings=HttpSettings(result_preview=shows)).get("/openapi.json")).json
    told = document["paths"]["/v1/fetcher/{id}/result/preview"]["get"]["responses"]
    assert ("200" in told, "403" in told) == (shows, True)
