"""Requests of tenants: held, counted, cut off, and named in what is told of them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from hypercorn.typing import HTTPScope
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.api.incoming import LINGER_SECONDS
from fetcher.api.services import HttpSettings
from fetcher.api.stream_places import StreamRooms
from fetcher.domain.json_text import parse
from fetcher.domain.tenants import TenantsLeftAlone
from tests.unit.api.asgi_client import Exchange, a_scope, answer_of, exchange
from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, a_body, a_request
from tests.unit.api.results import DOCUMENT, MemoryObjects, completed
from tests.unit.api.tenant_harness import TenantsApi, bearer, tenants_api
from tests.unit.api.test_request_spans import Noting

EVENTS = f"{JOBS}/events"
UNKNOWN = f"{JOBS}/0197ca00-1111-7222-8333-444455556666"
MEBIBYTE = bytes(1024 * 1024)
UNAVAILABLE = {
    "code": "SERVICE_UNAVAILABLE",
    "title": "Service Unavailable",
    "message": "Service temporarily unavailable",
    "errorCode": "SERVICE_UNAVAILABLE",
}


def a_request_of(
    tenant: str, method: str = "GET", path: str = CONNECTIONS, *more: tuple[bytes, bytes]
) -> HTTPScope:
    authorization = bearer(tenant)["Authorization"].encode()
    headers = [(b"authorization", authorization), (b"x-request-id", b"r-1"), *more]
    return a_scope(method, path.encode(), headers=headers)


@asynccontextmanager
async def listening(api: TenantsApi, tenant: str) -> AsyncIterator[Exchange]:
    """An open event stream."""
    async with exchange(api.app, a_request_of(tenant, path=EVENTS)) as stream:
        await stream.body(b"")
        assert await stream.next() == b"retry: 1000\n\n"
        yield stream


# --- held --------------------------------------------------------------------------------------


async def test_tenant_is_held_until_the_end_of_a_stream(autojump_clock: MockClock) -> None:
    api = tenants_api()
    async with listening(api, "acme-7") as stream:
        await trio.sleep(20)
        assert api.gate.inside == ["acme-7"]
        await stream.disconnect()
        await stream.ended.wait()
    assert api.gate.inside == []


async def test_body_is_not_read_before_the_tenant_is_entered() -> None:
    api = tenants_api()
    api.gate.hold = trio.Event()
    length = (b"content-length", b"1048576")
    async with exchange(api.app, a_request_of("acme-7", "POST", JOBS, length)) as talk:
        await talk.body(MEBIBYTE)
        await wait_all_tasks_blocked()
        assert (talk.waiting_events, api.gate.asked) == (1, ["acme-7"])
        api.gate.hold.set()
        assert b"FET-0001" in await talk.next()
        assert talk.waiting_events == 0


async def test_refused_tenant_s_body_is_taken_for_a_moment(autojump_clock: MockClock) -> None:
    api = tenants_api()
    api.gate.tenants["acme-7"] = TenantsLeftAlone()
    length = (b"content-length", b"9999999")
    async with exchange(api.app, a_request_of("acme-7", "POST", JOBS, length)) as talk:
        assert parse(await talk.next()) == UNAVAILABLE
        assert talk.header("connection") == ["close"]
        began = trio.current_time()
        await talk.body(MEBIBYTE, more=True)
        await talk.ended.wait()
        assert trio.current_time() - began == pytest.approx(LINGER_SECONDS)


# --- cut off -----------------------------------------------------------------------------------


async def test_request_whose_tenant_is_cut_off_before_its_answer_is_told_so(
    autojump_clock: MockClock,
) -> None:
    api = tenants_api()
    length = (b"content-length", b"100")
    async with exchange(api.app, a_request_of("acme-7", "POST", JOBS, length)) as talk:
        await talk.body(b"{", more=True)
        await wait_all_tasks_blocked()
        assert api.gate.inside == ["acme-7"]
        api.cut("acme-7")
        assert parse(await talk.next()) == UNAVAILABLE
        assert (talk.status, talk.header("retry-after")) == (503, ["5"])
        assert api.gate.inside == []
        await talk.ended.wait()
    assert api.ran == []


async def test_operation_that_runs_when_its_tenant_is_cut_off_is_ended() -> None:
    started, ended = trio.Event(), trio.Event()

    class Slow:
        async def take(self, key: str) -> float:
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()
            raise AssertionError

    api = tenants_api("acme-7", "beta-2", limiter=Slow())
    path = f"{CONNECTIONS}/0197ca00-1111-7222-8333-444455556666/test"
    async with exchange(api.app, a_request_of("acme-7", "POST", path)) as talk:
        await talk.body(b"")
        await started.wait()
        api.cut("beta-2")
        await wait_all_tasks_blocked()
        assert not ended.is_set()
        api.cut("acme-7")
        assert parse(await talk.next()) == UNAVAILABLE
        assert ended.is_set()


async def test_stream_whose_tenant_is_cut_off_ends_short(autojump_clock: MockClock) -> None:
    api = tenants_api("acme-7", "beta-2")
    with capture_logs() as logs:
        async with listening(api, "acme-7") as stream, listening(api, "beta-2") as other:
            api.cut("acme-7")
            await stream.ended.wait()
            assert api.gate.inside == ["beta-2"]
            assert await other.next() == b": still here\n\n"
    cut = [log for log in logs if log["event"] == "request_cut"]
    assert [log["has_begun"] for log in cut] == [True]


# --- so many at once ---------------------------------------------------------------------------


async def test_one_more_than_a_tenant_may_have_is_refused_and_others_are_served(
    autojump_clock: MockClock,
) -> None:
    api = tenants_api("acme-7", "beta-2", settings=HttpSettings(max_tenant_requests=3))
    async with listening(api, "acme-7"), AsyncExitStack() as slow:
        api.gate.hold = trio.Event()
        talks: list[Exchange] = []
        for _ in range(2):
            scope = a_request_of("acme-7", path=UNKNOWN)
            talks.append(await slow.enter_async_context(exchange(api.app, scope)))
            await talks[-1].body(b"")
        await wait_all_tasks_blocked()
        api.gate.hold, held = trio.Event(), api.gate.hold
        api.gate.hold.set()
        refused = await api.get(CONNECTIONS, tenant="acme-7")
        assert refused.status == 429
        assert refused.json == {
            "code": 429,
            "title": "Too Many Requests",
            "message": "the tenant has 3 requests under way already",
            "errorCode": "tenant_requests_limit",
        }
        assert refused.headers["Retry-After"] == "1"
        began = trio.current_time()
        assert (await api.get(UNKNOWN, tenant="beta-2")).json["code"] == "FET-1001"
        assert trio.current_time() == began
        held.set()
        for talk in talks:
            assert b"FET-1001" in await talk.next()
            await talk.ended.wait()
        assert (await api.get(UNKNOWN, tenant="acme-7")).json["code"] == "FET-1001"
    assert api.gate.asked == ["acme-7"] * 3 + ["beta-2", "acme-7"]


async def test_refused_and_failed_requests_free_their_places() -> None:
    api = tenants_api(settings=HttpSettings(max_tenant_requests=1))
    for _ in range(3):
        assert (await api.get(CONNECTIONS, tenant="acme-9")).status == 404
        assert (await api.get(CONNECTIONS, tenant="acme-7")).status == 200
        assert (await api.call("POST", JOBS, {}, tenant="acme-7")).status == 400


async def test_event_streams_leave_half_of_a_tenant_s_requests(autojump_clock: MockClock) -> None:
    api = tenants_api(settings=HttpSettings(max_tenant_requests=4))
    async with listening(api, "acme-7"), listening(api, "acme-7"):
        refused = await api.get(EVENTS, tenant="acme-7")
        assert (refused.status, refused.json["errorCode"]) == (503, "too_many_streams")
        assert (await api.get(CONNECTIONS, tenant="acme-7")).status == 200


async def test_event_streams_of_all_tenants_together_are_bounded(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetcher.api.stream_places.MOST_EVENT_STREAMS", 6)
    names = [f"t{number}" for number in range(8)]
    api = tenants_api(*names, stream_rooms=StreamRooms())
    statuses: list[int | None] = []
    async with AsyncExitStack() as streams:
        for tenant in ["t0"] * 4 + names[1:]:
            scope = a_request_of(tenant, path=EVENTS)
            stream = await streams.enter_async_context(exchange(api.app, scope))
            await stream.body(b"")
            await stream.next()
            statuses.append(stream.status)
    assert statuses == [200, 200, 200, 503, 200, 200, 503, 503, 503, 503, 503]


async def test_bodies_of_one_tenant_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetcher.api.request_limits.MAX_HELD_BYTES", 6 * 1024 * 1024)
    api = tenants_api("acme-7", "beta-2")
    coded = (b"transfer-encoding", b"chunked")
    async with exchange(api.app, a_request_of("acme-7", "POST", JOBS, coded)) as first:
        for _ in range(3):
            await first.body(MEBIBYTE, more=True)
        await wait_all_tasks_blocked()
        refused, _ = await answer_of(
            api.app, a_request_of("acme-7", "POST", JOBS, coded), [MEBIBYTE]
        )
        assert refused.status == 503
        served, _ = await answer_of(
            api.app, a_request_of("beta-2", "POST", JOBS, coded), [MEBIBYTE]
        )
        assert served.status == 400
    again, _ = await answer_of(api.app, a_request_of("acme-7", "POST", JOBS, coded), [MEBIBYTE] * 3)
    assert again.status == 400


async def test_previews_of_all_tenants_together_are_bounded() -> None:
    class Counting(MemoryObjects):
        now = most = 0

        @asynccontextmanager
        async def read(self, key: str) -> AsyncIterator[AsyncIterator[bytes]]:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                for _ in range(50):
                    await trio.lowlevel.checkpoint()
                async with super().read(key) as chunks:
                    yield chunks
            finally:
                self.now -= 1

    names = ["t0", "t1", "t2"]
    bucket = Counting()
    api = tenants_api(*names, stream_rooms=StreamRooms(), objects=bucket)
    statuses: list[int] = []

    async def preview(tenant: str, path: str) -> None:
        statuses.append((await api.get(path, tenant=tenant)).status)

    async with trio.open_nursery() as nursery:
        for tenant in names:
            job = await completed(api.apis[tenant], DOCUMENT)
            for _ in range(3):
                nursery.start_soon(preview, tenant, f"{JOBS}/{job.id}/result/preview")
    assert statuses == [200] * 9
    assert bucket.most == 2


# --- what is told ------------------------------------------------------------------------------


async def test_log_names_the_tenant_and_metrics_do_not() -> None:
    api = tenants_api()
    with capture_logs() as logs:
        await api.get(CONNECTIONS, tenant="acme-7")
        await api.get(CONNECTIONS, tenant="acme-9")
        await api.get("/version")
        await api.get(CONNECTIONS)
    told = [(log["http_status_code"], log.get("tenant_id")) for log in logs if "http_path" in log]
    assert told == [(200, "acme-7"), (404, "acme-9"), (200, None), (401, None)]
    metrics = (await api.get("/metrics")).raw
    assert b'route="/v1/management/connections"' in metrics
    assert b"acme" not in metrics


async def test_spans_name_the_tenant() -> None:
    tracer = Noting()
    api = tenants_api(tracer=tracer)
    created = await api.call("POST", CONNECTIONS, a_body(), tenant="acme-7", headers=PRODUCT)
    assert created.status == 201
    asked = await api.call("POST", JOBS, a_request(), tenant="acme-7")
    assert asked.status == 202
    assert {span.name: span.notes.get("tenant.id") for span in tracer.spans} == {
        "POST /v1/management/connections": "acme-7",
        "POST /v1/fetcher": "acme-7",
        "service.create_fetcher_job": "acme-7",
    }
