"""Each deed over HTTP leaves its entry, with its caller and its end."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from hypercorn.typing import ASGISendEvent
from trio.testing import MockClock

from fetcher.api import observation
from fetcher.api.services import HttpSettings
from fetcher.domain.access import Granted
from fetcher.domain.audit import AuditQuery
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import new_job_id
from tests.unit.api.asgi_client import a_scope, answer_of, exchange
from tests.unit.api.harness import (
    CONNECTIONS,
    JOBS,
    PRODUCT,
    Api,
    a_body,
    a_connection,
    a_job,
    an_api,
    an_api_with,
)
from tests.unit.api.harness import a_request as a_job_request
from tests.unit.api.results import MemoryObjects, an_api_with_store, bucket, completed, result_path
from tests.unit.api.test_authorization import BEARER, Judge


async def deeds(api: Api) -> list[tuple[str, str, str, str]]:
    """Action, target, product and outcome of all, in the order of the text."""
    entries = (await api.records.audit.list_page(AuditQuery())).items
    return sorted((str(e.action), e.target, e.product, e.outcome) for e in entries)


async def test_connection_from_its_creation_to_its_end() -> None:
    api = an_api()
    made = await api.create(a_body())
    connection_id = made.json["id"]
    path, product = f"{CONNECTIONS}/{connection_id}", PRODUCT["X-Product-Name"]
    await api.call("PATCH", path, {"host": "other.example.com"})
    await api.call("POST", f"{path}/test")
    await api.call("POST", f"{path}/assign", headers=PRODUCT)
    await api.call("DELETE", path)
    await api.call("DELETE", path)
    assert await deeds(api) == [
        ("connection.assigned", connection_id, product, "FET-1015"),
        ("connection.changed", connection_id, product, "succeeded"),
        ("connection.created", connection_id, product, "succeeded"),
        ("connection.deleted", connection_id, "", "FET-1001"),
        ("connection.deleted", connection_id, "", "succeeded"),
        ("connection.tested", connection_id, "", "succeeded"),
    ]


async def test_reading_leaves_no_entry() -> None:
    api = an_api()
    connection = a_connection()
    await api.records.connections.insert(connection)
    for path in (CONNECTIONS, f"{CONNECTIONS}/{connection.id}", JOBS):
        assert (await api.get(path)).status == 200
    assert await deeds(api) == []


async def test_job_its_repeat_its_cancel_and_its_rerun() -> None:
    api = await an_api_with("sales_db")
    first = await api.ask(a_job_request())
    again = await api.ask(a_job_request())
    assert (first.status, again.status) == (202, 200)
    job_id = first.json["jobId"]
    await api.call("POST", f"{JOBS}/{job_id}/cancel")
    rerun = await api.call("POST", f"{JOBS}/{job_id}/rerun")
    assert rerun.status == 202
    unknown = str(new_job_id())
    await api.call("POST", f"{JOBS}/{unknown}/cancel")
    product = (await api.get(f"{JOBS}/{job_id}")).json["metadata"]["source"].lower()
    assert await deeds(api) == sorted(
        [
            ("job.created", job_id, product, "succeeded"),
            ("job.created", job_id, product, "repeated"),
            ("job.cancelled", job_id, product, "succeeded"),
            ("job.rerun", job_id, product, "succeeded"),
            ("job.cancelled", unknown, "", "FET-1001"),
        ]
    )


async def test_result_fetched_shown_and_deleted() -> None:
    api = an_api_with_store()
    job = await completed(api)
    path = result_path(job)
    await api.get(path)
    await api.get(f"{path}/preview")
    await api.call("DELETE", path)
    await api.get(path)
    found = await deeds(api)
    assert [(action, target, outcome) for action, target, _, outcome in found] == [
        ("result.deleted", str(job.id), "succeeded"),
        ("result.downloaded", str(job.id), "FET-1024"),
        ("result.downloaded", str(job.id), "succeeded"),
        ("result.previewed", str(job.id), "succeeded"),
    ]


class Busy(MemoryObjects):
    """A bucket that has no address to give for now."""

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("bucket away")


class Vanishing(MemoryObjects):
    """A bucket from which the object is taken between the look at it and its opening."""

    async def size(self, key: str) -> int | None:
        size = await super().size(key)
        await self.delete(key)
        return size


def breaking() -> MemoryObjects:
    objects = MemoryObjects()
    objects.breaks_after = 0
    return objects


@pytest.mark.parametrize(
    ("objects", "settings", "outcome"),
    [
        (Busy(), HttpSettings(result_redirect=True), "unavailable"),
        (MemoryObjects(), HttpSettings(max_result_streams=0), "too_many_streams"),
        (Vanishing(), HttpSettings(), "FET-1024"),
        (breaking(), HttpSettings(), "unavailable"),
    ],
    ids=["no address", "no place", "object gone", "store fails before the first bytes"],
)
async def test_download_that_is_refused_at_its_opening_has_not_succeeded(
    objects: MemoryObjects, settings: HttpSettings, outcome: str
) -> None:
    api = an_api_with_store(objects, settings=settings)
    job = await completed(api)
    talk, _ = await answer_of(api.app, a_scope("GET", result_path(job).encode()))
    assert (talk.status or 0) >= 400
    found = await deeds(api)
    assert found == [("result.downloaded", str(job.id), job.product_name, outcome)]


async def test_downloads_beyond_the_places_that_were_let_in_at_once_have_not_succeeded() -> None:
    api = an_api_with_store(settings=HttpSettings(max_result_streams=1))
    job = await completed(api)
    scopes = [a_scope("GET", result_path(job).encode()) for _ in range(2)]
    async with exchange(api.app, scopes[0]) as one, exchange(api.app, scopes[1]) as other:
        await trio.testing.wait_all_tasks_blocked()
        await one.body(b"")
        await other.body(b"")
        await trio.testing.wait_all_tasks_blocked()
        await one.rest()
        await other.rest()
    assert sorted(outcome for *_, outcome in await deeds(api)) == ["succeeded", "too_many_streams"]


async def test_redirected_download_leaves_its_entry() -> None:
    redirecting = HttpSettings(result_redirect=True)
    api = an_api_with_store(MemoryObjects(address="https://bucket.test"), settings=redirecting)
    job = await completed(api)
    assert (await api.get(result_path(job))).status == 307
    assert [outcome for *_, outcome in await deeds(api)] == ["succeeded"]


async def test_client_that_goes_away_before_the_first_bytes_interrupts_its_download(
    autojump_clock: MockClock,
) -> None:
    class Slow(MemoryObjects):
        async def before_chunk(self) -> None:
            await trio.sleep(50)

    api = an_api_with_store(Slow())
    job = await completed(api)
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        await trio.sleep(1)
        await talk.disconnect()
        await trio.sleep(1)
    assert [outcome for *_, outcome in await deeds(api)] == ["interrupted"]


async def lost() -> None:
    await trio.lowlevel.checkpoint()
    raise BrokenPipeError


@pytest.mark.parametrize("head", [trio.sleep_forever, lost])
async def test_client_that_goes_away_while_the_head_is_sent_interrupts_its_download(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, head: Callable[[], Awaitable[None]]
) -> None:
    """No byte of the result was read; it was asked for all the same."""
    send = observation._Answer.send
    heads: list[ASGISendEvent] = []

    async def sent(answer: observation._Answer, event: ASGISendEvent) -> None:
        if event["type"] == "http.response.start" and not heads:
            heads.append(event)
            await head()
        await send(answer, event)

    monkeypatch.setattr(observation._Answer, "send", sent)
    api = an_api_with_store()
    job = await completed(api)
    async with exchange(api.app, a_scope("GET", result_path(job).encode())) as talk:
        await talk.body(b"")
        await trio.sleep(1)
        await talk.disconnect()
        await trio.sleep(1)
    assert heads
    assert bucket(api).given_chunks == 0
    assert [outcome for *_, outcome in await deeds(api)] == ["interrupted"]


async def test_head_of_a_result_leaves_no_entry() -> None:
    api = an_api_with_store()
    job = await completed(api)
    await answer_of(api.app, a_scope("HEAD", result_path(job).encode()))
    assert await deeds(api) == []


async def test_entry_names_the_caller_that_was_let_in_and_the_request() -> None:
    for authorizer, actor in ((Judge(Granted("acme/jane")), "acme/jane"), (None, "anonymous")):
        api = an_api(authorizer=authorizer)
        job = a_job()
        await api.records.jobs.insert(job)
        headers = {**BEARER, "X-Request-Id": "req-77"}
        await api.call("POST", f"{JOBS}/{job.id}/cancel", headers=headers)
        [entry] = (await api.records.audit.list_page(AuditQuery())).items
        assert (entry.actor, entry.request_id) == (actor, "req-77")


async def test_no_secret_and_no_filter_value_is_in_an_entry() -> None:
    api = await an_api_with("sales_db")
    canary = "canary-5b1f"
    await api.create(a_body(password=canary))
    request: dict[str, Any] = a_job_request()
    tables = request["dataRequest"]["mappedFields"]["sales_db"]
    table = next(iter(tables))
    request["dataRequest"]["filters"] = {"sales_db": {table: {tables[table][0]: {"eq": [canary]}}}}
    assert (await api.ask(request)).status == 202
    entries = (await api.records.audit.list_page(AuditQuery())).items
    assert len(entries) == 2
    assert canary not in repr(entries)
