"""Idempotency-Key on POST /v1/fetcher (decisions)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.domain.jobs import JobStatus
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import JOBS, Answered, Api, a_request, an_api_with, end, stored

DAY_SECONDS = 24 * 3600
OTHER: dict[str, Any] = {"mappedFields": {"sales_db": {"orders": ["id"]}}}


async def ask(api: Api, key: str, **changed: Any) -> Answered:
    return await api.call("POST", JOBS, a_request(**changed), headers={"Idempotency-Key": key})


@pytest.mark.parametrize("status", list(JobStatus))
async def test_same_key_and_request_is_the_same_job_whatever_became_of_it(
    status: JobStatus, autojump_clock: MockClock
) -> None:
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    await end(api, job, status)
    await trio.sleep(DAY_SECONDS - 1)
    again = await ask(api, "k-1")
    assert (again.status, again.json["jobId"]) == (200, str(job.id))
    assert again.json["status"] == status.value
    assert api.hints == [job.id]


async def test_same_key_with_another_request_is_a_conflict() -> None:
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    refused = await ask(api, "k-1", **OTHER)
    assert refused.problem == (409, "FET-1025", "Idempotency Key Reused")
    assert refused.json["jobId"] == str(job.id)
    assert (await ask(api, "K-1", **OTHER)).status == 202


async def test_key_goes_before_duplicates() -> None:
    api = await an_api_with()
    await stored(api, await ask(api, "k-1"))
    other = await stored(api, await ask(api, "k-2", **OTHER))
    # This request is a repeat of the second job's, but its key is the first one's.
    assert (await ask(api, "k-1", **OTHER)).status == 409
    assert (await ask(api, "k-2", **OTHER)).json["jobId"] == str(other.id)
    # Without a key of its own it is a plain repeat.
    assert (await ask(api, "k-3", **OTHER)).json["jobId"] == str(other.id)


async def test_key_is_free_again_after_a_day(autojump_clock: MockClock) -> None:
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    await end(api, job, JobStatus.COMPLETED)
    await trio.sleep(DAY_SECONDS)
    again = await stored(api, await ask(api, "k-1", **OTHER))
    assert again.id != job.id
    assert (await ask(api, "k-1", **OTHER)).json["jobId"] == str(again.id)


async def test_products_have_keys_of_their_own() -> None:
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    other_product = {"metadata": {"source": "billing"}}
    assert (await ask(api, "k-1", **other_product)).json["code"] == "FET-1016"
    spelled = {"metadata": {"source": "ACME-reports"}}
    assert (await ask(api, "k-1", **spelled)).json["jobId"] == str(job.id)


async def test_request_that_was_refused_leaves_its_key_free() -> None:
    api = await an_api_with()
    assert (await ask(api, "k-1", metadata={"source": "billing"})).status == 400
    assert (await ask(api, "k-1", metadata={"source": "acme-reports", "n": 1})).status == 202


async def test_twenty_posts_with_one_key_at_once_make_one_job() -> None:
    api = await an_api_with()
    answers: list[Answered] = []

    async def post() -> None:
        answers.append(await ask(api, "k-1"))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(post)
    assert sorted(answered.status for answered in answers) == [200] * 19 + [202]
    assert len({answered.json["jobId"] for answered in answers}) == 1


async def test_two_requests_that_race_for_one_key_make_one_job_and_one_conflict() -> None:
    api = await an_api_with()
    answers: list[Answered] = []

    async def post(changed: dict[str, Any]) -> None:
        answers.append(await ask(api, "k-1", **changed))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(post, {})
        nursery.start_soon(post, OTHER)
    assert sorted(answered.status for answered in answers) == [202, 409]


@pytest.mark.parametrize(
    "key",
    [b"", b" ", b"a b", b"\xc3\xa9", b"a\tb", b"x" * 256],
    ids=["", "blank", "a b", "é", "tab", "256"],
)
async def test_what_is_no_key_is_refused(key: bytes) -> None:
    api = await an_api_with()
    headers = [(b"content-type", b"application/json"), (b"idempotency-key", key)]
    scope = a_scope("POST", JOBS.encode(), headers=headers)
    talk, body = await answer_of(api.app, scope, [b"{}"])
    assert talk.status == 400
    assert b'"code":"FET-0403"' in body
    assert b"Idempotency-Key" in body


async def test_two_keys_are_refused_and_the_longest_is_taken() -> None:
    api = await an_api_with()
    headers = [(b"content-type", b"application/json")] + 2 * [(b"idempotency-key", b"k")]
    talk, body = await answer_of(api.app, a_scope("POST", JOBS.encode(), headers=headers), [b"{}"])
    assert (talk.status, b"FET-0403" in body) == (400, True)
    assert (await ask(api, "!" + "~" * 254)).status == 202


async def test_key_of_another_day_that_races_is_taken_over_by_one(
    autojump_clock: MockClock,
) -> None:
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    await end(api, job, JobStatus.FAILED)
    await trio.sleep(DAY_SECONDS + 1)
    answers: list[Answered] = []

    async def post() -> None:
        answers.append(await ask(api, "k-1"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(post)
    assert sorted(answered.status for answered in answers) == [200] * 4 + [202]
    assert {answered.json["jobId"] for answered in answers}.isdisjoint({str(job.id)})


async def test_key_that_came_with_a_repeat_is_bound_to_the_job_that_answered(
    autojump_clock: MockClock,
) -> None:
    api = await an_api_with()
    job = await stored(api, await api.call("POST", JOBS, a_request()))
    assert (await ask(api, "k-1")).json["jobId"] == str(job.id)
    await end(api, job, JobStatus.COMPLETED)
    await trio.sleep(3600)
    again = await ask(api, "k-1")
    assert (again.status, again.json["jobId"]) == (200, str(job.id))
    assert (await ask(api, "k-1", **OTHER)).problem[:2] == (409, "FET-1025")
    # That it never came with: the job is no duplicate any more.
    assert (await ask(api, "k-2")).status == 202


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
async def test_each_key_that_came_with_a_repeat_means_its_job_whatever_became_of_it(
    autojump_clock: MockClock, status: JobStatus
) -> None:
    """Whose answer was lost asks again with its own key, and must not start a second job."""
    api = await an_api_with()
    job = await stored(api, await ask(api, "k-1"))
    for key in ("k-2", "k-3"):
        assert (await ask(api, key)).json["jobId"] == str(job.id)
    await end(api, job, status)
    await trio.sleep(3600)
    for key in ("k-3", "k-2", "k-1"):
        again = await ask(api, key)
        assert (again.status, again.json["jobId"]) == (200, str(job.id))
        assert (await ask(api, key, **OTHER)).problem[:2] == (409, "FET-1025")
    await trio.sleep(24 * 3600)
    fresh = await stored(api, await ask(api, "k-2"))
    assert fresh.id != job.id


async def test_key_of_a_repeat_that_another_request_takes_at_once_makes_one_conflict() -> None:
    api = await an_api_with()
    await stored(api, await api.call("POST", JOBS, a_request()))
    await stored(api, await api.call("POST", JOBS, a_request(**OTHER)))
    answers: list[Answered] = []

    async def post(changed: dict[str, Any]) -> None:
        answers.append(await ask(api, "k-1", **changed))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(post, {})
        nursery.start_soon(post, OTHER)
    assert sorted(answered.status for answered in answers) == [200, 409]
