"""GET and DELETE /v1/fetcher/{id}/result (decisions, "Result over HTTP")."""

from dataclasses import replace
from datetime import timedelta

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from fetcher import consumer
from fetcher.api.services import HttpSettings
from fetcher.domain.errors import OperationRefused, PortUnavailable
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import JobStatus
from tests.unit.api.asgi_client import a_scope, answer_of, exchange
from tests.unit.api.harness import (
    JOBS,
    KEYS,
    START,
    a_connection,
    a_job,
    a_request,
    an_api,
    end,
    stored,
)
from tests.unit.api.results import (
    DOCUMENT,
    MemoryObjects,
    an_api_with_store,
    bucket,
    completed,
    put,
    result_path,
)

MISSING = (404, "FET-1024", "Result Not Found")


async def test_the_sealed_bytes_come_with_what_opening_them_needs() -> None:
    api = an_api_with_store()
    job = await completed(api)
    assert job.result is not None
    answered = await api.get(result_path(job))
    assert answered.status == 200
    assert answered.raw == bucket(api).objects[job.result.path]
    assert answered.headers["Content-Type"] == "application/octet-stream"
    assert answered.headers["Content-Length"] == str(len(answered.raw))
    assert answered.headers["X-Fetcher-Result-Key-Version"] == "7"
    with consumer.open_result(
        answered.raw,
        storage_key=KEYS.current.storage,
        hmac_key=KEYS.current.external_hmac,
        expected_hmac=answered.headers["X-Fetcher-Result-Hmac"],
        expected_size=int(answered.headers["X-Fetcher-Result-Size"]),
    ) as opened:
        assert opened.read() == DOCUMENT
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert (shown["sizeBytes"], shown["rowCount"]) == (len(DOCUMENT), 2)
    assert bucket(api).open_reads == 0


async def test_head_tells_the_size_and_opens_nothing() -> None:
    api = an_api_with_store()
    job = await completed(api)
    talk, body = await answer_of(api.app, a_scope("HEAD", result_path(job).encode()))
    assert (talk.status, body) == (200, b"")
    assert int(talk.header("content-length")[0]) > len(DOCUMENT)
    assert bucket(api).given_chunks == 0


async def test_each_reason_for_no_result_has_its_words() -> None:
    api = an_api_with_store()
    told = set()
    for status in (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.FAILED, JobStatus.CANCELLED):
        job = await put(api, a_job(status=status, request_hash=status.value))
        answered = await api.get(result_path(job))
        assert answered.problem == MISSING
        told.add(answered.json["message"])
    deleted = replace(await completed(api), result_deleted_at=START)
    api.records.jobs._state.jobs[deleted.id].job = deleted  # type: ignore[attr-defined] # memory
    gone = await completed(api, b'{"gone":{}}')
    bucket(api).objects.clear()
    for job in (deleted, gone):
        answered = await api.get(result_path(job))
        assert answered.problem == MISSING
        told.add(answered.json["message"])
    assert len(told) == 6
    unknown = await api.get(f"{JOBS}/{new_job_id()}/result")
    assert unknown.problem == (404, "FET-1001", "Entity Not Found")
    assert (await api.get(f"{JOBS}/nope/result")).json["code"] == "FET-0404"


async def test_manager_without_a_store_says_so() -> None:
    api = an_api_with_store()
    job = await completed(api)
    storeless = an_api(jobs=api.records.jobs)
    for method, path in (
        ("GET", result_path(job)),
        ("GET", f"{result_path(job)}/preview"),
        ("DELETE", result_path(job)),
    ):
        answered = await storeless.call(method, path)
        assert answered.problem == (503, "FET-0003", "Service Unavailable")
        assert "OBJECT_STORAGE" in answered.json["message"]


async def test_store_that_is_away_is_503_before_anything_is_sent() -> None:
    api = an_api_with_store()
    job = await completed(api)
    bucket(api).down = True
    assert (await api.get(result_path(job))).status == 503


async def test_result_that_is_deleted_while_it_is_asked_for_is_not_found() -> None:
    class Deleted(MemoryObjects):
        async def size(self, key: str) -> int | None:
            size = await super().size(key)
            await self.delete(key)
            return size

    api = an_api_with_store(Deleted())
    job = await completed(api)
    scope = a_scope("GET", result_path(job).encode())
    with capture_logs() as logs:
        talk, body = await answer_of(api.app, scope)
    assert talk.status == 404
    assert b'"FET-1024"' in body
    assert talk.header("content-length") == [str(len(body))]
    assert [entry["log_level"] for entry in logs] == ["warning"]


async def test_store_that_fails_before_its_first_chunk_is_503() -> None:
    api = an_api_with_store()
    job = await completed(api)
    bucket(api).breaks_after = 0
    talk, body = await answer_of(api.app, a_scope("GET", result_path(job).encode()))
    assert (talk.status, talk.header("retry-after")) == (503, ["5"])
    assert b'"FET-0003"' in body
    assert bucket(api).open_reads == 0


async def test_store_that_fails_under_way_ends_the_answer_short() -> None:
    api = an_api_with_store(MemoryObjects(chunk_bytes=10))
    job = await completed(api)
    bucket(api).breaks_after = 2
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        received = await talk.rest()
    assert (talk.status, len(received)) == (200, 20)
    assert int(talk.header("content-length")[0]) > 20
    assert bucket(api).open_reads == 0


async def test_only_one_chunk_is_in_hand_while_a_client_does_not_read() -> None:
    api = an_api_with_store(MemoryObjects(chunk_bytes=10))
    job = await completed(api)
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        assert len(await talk.next()) == 10
        await trio.testing.wait_all_tasks_blocked()
        assert bucket(api).given_chunks == 2
    assert bucket(api).open_reads == 0


async def test_store_that_stalls_is_given_up(autojump_clock: MockClock) -> None:
    class Stalled(MemoryObjects):
        async def before_chunk(self) -> None:
            await trio.sleep(3600 * self.given_chunks)

    api = an_api_with_store(Stalled(chunk_bytes=5))
    job = await completed(api)
    began = trio.current_time()
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        assert len(await talk.rest()) == 5
    assert trio.current_time() - began == pytest.approx(60, abs=5)
    assert bucket(api).open_reads == 0


async def test_too_many_streams_are_refused_for_now() -> None:
    api = an_api_with_store(
        MemoryObjects(chunk_bytes=40), settings=HttpSettings(max_result_streams=1)
    )
    job = await completed(api)
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        await talk.next()
        refused = await api.get(result_path(job))
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    assert (await api.get(result_path(job))).status == 200


async def test_redirect_only_where_it_is_asked_for_and_the_store_can() -> None:
    redirecting = HttpSettings(result_redirect=True)
    api = an_api_with_store(MemoryObjects(address="https://bucket.test"), settings=redirecting)
    job = await completed(api)
    assert job.result is not None
    answered = await api.get(result_path(job))
    expected = f"https://bucket.test/{job.result.path}?expires=60"
    assert (answered.status, answered.headers["Location"]) == (307, expected)
    here = await api.get(f"{result_path(job)}?redirect=false")
    assert (here.status, "Location" in here.headers) == (200, False)
    assert (await api.get(f"{result_path(job)}?redirect=true")).status == 307
    odd = await api.get(f"{result_path(job)}?redirect=no")
    assert odd.problem == (400, "FET-0405", "Invalid Query Parameter")
    bucket(api).objects.clear()
    assert (await api.get(result_path(job))).problem == MISSING

    cannot = an_api_with_store(settings=redirecting)
    assert (await cannot.get(result_path(await completed(cannot)))).status == 200
    unasked = an_api_with_store(MemoryObjects(address="https://bucket.test"))
    assert (await unasked.get(result_path(await completed(unasked)))).status == 200


async def test_record_s_text_that_no_header_can_hold_is_left_out() -> None:
    api = an_api_with_store()
    job = await completed(api, key_version="vé\r\nX-Evil: 1")
    answered = await api.get(result_path(job))
    assert answered.status == 200
    assert "X-Fetcher-Result-Key-Version" not in answered.headers
    assert "X-Evil" not in answered.headers


async def test_delete_takes_the_object_and_is_noted_once(autojump_clock: MockClock) -> None:
    api = an_api_with_store()
    job = await completed(api)
    answered = await api.call("DELETE", result_path(job))
    assert (answered.status, answered.raw) == (204, b"")
    assert bucket(api).objects == {}
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert shown["resultDeletedAt"] == "2026-03-14T09:26:53.123Z"
    assert shown["status"] == "completed"
    assert (await api.call("DELETE", result_path(job))).problem == MISSING
    assert (await api.get(result_path(job))).problem == MISSING


async def test_delete_waits_for_the_job_s_end() -> None:
    api = an_api_with_store()
    for status, problem in (
        (JobStatus.PENDING, (409, "FET-1021", "Job In Progress")),
        (JobStatus.PROCESSING, (409, "FET-1021", "Job In Progress")),
        (JobStatus.FAILED, MISSING),
    ):
        job = await put(api, a_job(status=status, request_hash=status.value))
        assert (await api.call("DELETE", result_path(job))).problem == problem


async def test_delete_that_the_record_did_not_take_can_be_repeated() -> None:
    api = an_api_with_store()
    job = await completed(api)
    jobs = api.records.jobs
    noting = jobs.mark_result_deleted

    async def away(*_: object, **__: object) -> bool:
        raise PortUnavailable("down")

    jobs.mark_result_deleted = away  # type: ignore[method-assign] # the records are away
    assert (await api.call("DELETE", result_path(job))).status == 503
    jobs.mark_result_deleted = noting  # type: ignore[method-assign] # and back
    assert (await api.call("DELETE", result_path(job))).status == 204


async def test_object_that_the_store_keeps_is_no_reason_to_come_back_soon() -> None:
    class Held(MemoryObjects):
        async def delete(self, key: str) -> None:
            await trio.lowlevel.checkpoint()
            raise OperationRefused("s3 delete refused: access denied")

    api = an_api_with_store(Held())
    job = await completed(api)
    answered = await api.call("DELETE", result_path(job))
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert "retry-after" not in answered.headers
    found = await api.records.jobs.get(job.id)
    assert found is not None
    assert found.result_deleted_at is None


async def test_client_that_goes_away_during_delete_leaves_both_stores_agreeing(
    autojump_clock: MockClock,
) -> None:
    class Slow(MemoryObjects):
        async def delete(self, key: str) -> None:
            await trio.sleep(5)
            await super().delete(key)

    api = an_api_with_store(Slow())
    job = await completed(api)
    async with exchange(api.app, a_scope("DELETE", result_path(job).encode())) as talk:
        await talk.body(b"")
        await trio.sleep(1)
        await talk.disconnect()
        await trio.sleep(10)
    found = await api.records.jobs.get(job.id)
    assert found is not None
    assert bucket(api).objects == {}
    assert found.result_deleted_at == (START + timedelta(seconds=5)).replace(microsecond=123000)


async def test_job_whose_result_was_deleted_is_no_duplicate() -> None:
    api = an_api_with_store()
    await api.records.connections.insert(a_connection())
    first = await stored(api, await api.ask(a_request()))
    await end(api, first, JobStatus.COMPLETED)
    assert (await api.ask(a_request())).status == 200
    assert await api.records.jobs.mark_result_deleted(first.id, at=START)
    again = await api.ask(a_request())
    assert again.status == 202
    assert again.json["jobId"] != str(first.id)
