"""GET /v1/fetcher/events (design section 8)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.api.event_stream import event_id, parse_event_id
from fetcher.api.services import HttpSettings
from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import FailureFacts, Job, JobStatus, ResultFacts
from fetcher.domain.json_text import parse
from tests.unit.api.asgi_client import Exchange, a_scope, exchange
from tests.unit.api.harness import JOBS, START, Api, a_job, an_api, end

EVENTS = f"{JOBS}/events"


@asynccontextmanager
async def listening(api: Api, **headers: str) -> AsyncIterator[Exchange]:
    """An open stream."""
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    async with exchange(api.app, a_scope("GET", EVENTS.encode(), headers=sent)) as stream:
        await stream.body(b"")
        assert await stream.next() == b"retry: 1000\n\n"
        yield stream


async def add_ended(api: Api, **changed: Any) -> Job:
    """A job that ends now."""
    job = a_job(request_hash=str(trio.current_time()), **changed)
    await api.records.jobs.insert(replace(job, status=JobStatus.PENDING))
    status = job.status if not job.status.is_active else JobStatus.COMPLETED
    await end(api, job, status)
    stored = await api.records.jobs.get(job.id)
    assert stored is not None
    return stored


def read(event: bytes) -> dict[str, Any]:
    """The fields of one event, its data parsed."""
    assert event.endswith(b"\n\n")
    lines = event.decode().removesuffix("\n\n").split("\n")
    fields: dict[str, Any] = dict(line.split(": ", 1) for line in lines)
    fields["data"] = parse(fields["data"].encode())
    return fields


async def test_ended_job_is_told_within_a_second(autojump_clock: MockClock) -> None:
    api = an_api()
    await add_ended(api)
    facts = ResultFacts(path="k.json", hmac="ab", size_bytes=9, row_count=2, key_version="1")
    async with listening(api) as stream:
        await trio.sleep(3)
        job = await add_ended(api, result=facts)
        began = trio.current_time()
        event = read(await stream.next())
        assert trio.current_time() - began <= 1
    assert job.completed_at is not None
    assert event["id"] == event_id(job)
    assert event["event"] == "job.completed"
    assert event["data"] == {
        "jobId": str(job.id),
        "status": "completed",
        "metadata": {"source": "acme-reports"},
        "resultPath": "k.json",
        "resultHmac": "ab",
        "sizeBytes": 9,
        "rowCount": 2,
        "createdAt": event["data"]["createdAt"],
        "completedAt": event["data"]["completedAt"],
    }


async def test_failed_job_tells_why(autojump_clock: MockClock) -> None:
    api = an_api()
    failure = FailureFacts(message="sales_db: connect failed", code="connect", source="sales_db")
    async with listening(api) as stream:
        await add_ended(api, status=JobStatus.FAILED, failure=failure)
        event = read(await stream.next())
    assert event["event"] == "job.failed"
    assert event["data"]["error"] == {
        "message": "sales_db: connect failed",
        "code": "connect",
        "source": "sales_db",
    }
    assert "resultPath" not in event["data"]


async def test_stream_goes_on_after_the_last_event_id(autojump_clock: MockClock) -> None:
    api = an_api()
    jobs = []
    for _ in range(3):
        jobs.append(await add_ended(api))
        await trio.sleep(1)
    async with listening(api, **{"Last-Event-ID": event_id(jobs[0])}) as stream:
        told = [read(await stream.next())["id"] for _ in range(2)]
    assert told == [event_id(jobs[1]), event_id(jobs[2])]


async def test_stream_of_a_product_tells_of_that_product_only(autojump_clock: MockClock) -> None:
    api = an_api()
    async with listening(api, **{"X-Product-Name": "Acme-Reports"}) as stream:
        await add_ended(api, metadata={"source": "other"})
        mine = await add_ended(api, metadata={"source": " ACME-reports"})
        assert read(await stream.next())["id"] == event_id(mine)


async def test_quiet_stream_sends_a_comment_every_15_s(autojump_clock: MockClock) -> None:
    api = an_api()
    async with listening(api) as stream:
        began = trio.current_time()
        for number in (1, 2):
            assert await stream.next() == b": still here\n\n"
            assert trio.current_time() - began == pytest.approx(15 * number, abs=1)


async def test_stream_outlives_a_record_store_that_is_away(autojump_clock: MockClock) -> None:
    class Away:
        async def latest_ended(self) -> EndedCursor | None:
            return None

        async def list_ended(self, **_: object) -> list[Job]:
            raise PortUnavailable("down")

    async with listening(an_api(jobs=Away())) as stream:
        assert await stream.next() == b": still here\n\n"


async def test_stream_ends_at_once_when_the_server_stops(autojump_clock: MockClock) -> None:
    api = an_api()
    async with listening(api) as stream:
        began = trio.current_time()
        api.services.stopping.set()
        assert await stream.rest() == b""
        assert trio.current_time() == began
    assert (stream.status, stream.header("Content-Type")) == (200, ["text/event-stream"])


async def test_stream_ends_when_the_client_goes_away(autojump_clock: MockClock) -> None:
    async with listening(an_api()) as stream:
        await stream.disconnect()
        await stream.ended.wait()


async def test_slow_client_holds_back_its_own_stream_only(autojump_clock: MockClock) -> None:
    api = an_api()
    async with listening(api) as slow, listening(api) as quick:
        jobs = []
        for _ in range(30):
            jobs.append(await add_ended(api))
            await trio.sleep(1)
        assert [read(await quick.next())["id"] for _ in jobs] == [event_id(job) for job in jobs]
        assert [read(await slow.next())["id"] for _ in jobs] == [event_id(job) for job in jobs]


async def test_too_many_streams_are_refused_and_a_closed_one_makes_room(
    autojump_clock: MockClock,
) -> None:
    api = an_api(settings=HttpSettings(max_event_streams=1))
    async with listening(api):
        refused = await api.get(EVENTS)
        assert refused.problem == (503, 503, "request_failed")
        assert (refused.json["errorCode"], refused.headers["Retry-After"]) == (
            "too_many_streams",
            "5",
        )
    async with listening(api) as stream:
        assert await stream.next() == b": still here\n\n"


async def test_of_many_that_open_at_once_those_beyond_the_limit_are_refused(
    autojump_clock: MockClock,
) -> None:
    api = an_api(settings=HttpSettings(max_event_streams=2))
    async with AsyncExitStack() as clients:
        talks = [
            await clients.enter_async_context(exchange(api.app, a_scope("GET", EVENTS.encode())))
            for _ in range(5)
        ]
        for talk in talks:
            await talk.body(b"")
        for talk in talks:
            await talk.next()
        assert sorted(talk.status or 0 for talk in talks) == [200, 200, 503, 503, 503]


async def test_head_answers_without_a_stream() -> None:
    answered = await an_api().call("HEAD", EVENTS)
    assert (answered.status, answered.headers["Content-Type"]) == (200, "text/event-stream")


@pytest.mark.parametrize("text", ["x", "1", "1-2", "-" + "0" * 32, "9" * 15 + "-" + "f" * 36])
async def test_text_that_is_no_event_id_is_refused(text: str) -> None:
    answered = await an_api().get(EVENTS, {"Last-Event-ID": text})
    assert answered.problem == (400, "FET-0403", "Invalid header")


def test_event_id_is_the_place_of_the_job() -> None:
    job = a_job(status=JobStatus.FAILED, completed_at=START.replace(microsecond=123000))
    place = parse_event_id(event_id(job))
    assert (place.completed_at, place.job_id) == (job.completed_at, job.id)


def test_event_id_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(FetcherError):
        parse_event_id(f"99999999999999999-{a_job().id}")
    latest = parse_event_id(f"{'9' * 14}-{a_job().id}").completed_at
    assert latest - START > timedelta(days=365)
