"""Too many pending jobs: 429 (JOBS_MAX_PENDING, JOBS_MAX_PENDING_PER_PRODUCT)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.api.services import HttpSettings
from fetcher.domain.job_store import PendingCounts
from fetcher.domain.jobs import JobStatus
from tests.unit.api.harness import (
    Answered,
    Api,
    a_connection,
    a_request,
    an_api,
    an_api_with,
    end,
    stored,
)

REFUSED = (429, 429, "Too Many Pending Jobs")


def request(number: int, source: str = "acme-reports") -> dict[str, Any]:
    return a_request(metadata={"source": source, "n": number})


async def ask(api: Api, number: int) -> Answered:
    return await api.ask(request(number))


async def test_new_jobs_are_refused_while_too_many_wait(autojump_clock: MockClock) -> None:
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=2))
    first = await stored(api, await ask(api, 1))
    assert (await ask(api, 2)).status == 202
    refused = await ask(api, 3)
    assert refused.problem == REFUSED
    assert refused.json["errorCode"] == "too_many_pending_jobs"
    assert refused.headers["Retry-After"] == "10"
    await end(api, first, JobStatus.COMPLETED)
    await trio.sleep(1.1)
    assert (await ask(api, 3)).status == 202
    assert (await ask(api, 4)).problem == REFUSED


async def test_repeat_is_never_refused_however_old_it_is(autojump_clock: MockClock) -> None:
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=1))
    job = await stored(api, await ask(api, 1))
    await trio.sleep(3600)
    assert (await ask(api, 2)).problem == REFUSED
    again = await ask(api, 1)
    assert (again.status, again.json["jobId"]) == (200, str(job.id))


async def test_running_jobs_do_not_wait(autojump_clock: MockClock) -> None:
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=1))
    job = await stored(api, await ask(api, 1))
    await api.records.leases.claim(job.id, owner="w", lease_seconds=60)
    await trio.sleep(2)
    assert (await ask(api, 2)).status == 202


async def test_product_has_its_own_limit() -> None:
    api = an_api(settings=HttpSettings(jobs_max_pending_per_product=1))
    await api.records.connections.insert(a_connection())
    await api.records.connections.insert(
        a_connection(config_name="billing_db", product_name="billing")
    )
    assert (await ask(api, 1)).status == 202
    assert (await ask(api, 2)).problem == REFUSED
    billing = a_request(
        mappedFields={"billing_db": {"t": ["x"]}}, metadata={"source": "Billing", "n": 1}
    )
    assert (await api.ask(billing)).status == 202


async def test_many_at_once_are_counted_once_and_do_not_pass_the_limit() -> None:
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=5))
    jobs = api.records.jobs
    counting, counts = jobs.pending_counts, list[str]()

    async def counted(*, product_name: str) -> PendingCounts:
        counts.append(product_name)
        return await counting(product_name=product_name)

    jobs.pending_counts = counted  # type: ignore[method-assign] # watched
    answers: list[int] = []

    async def post(number: int) -> None:
        answers.append((await ask(api, number)).status)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(post, number)
    assert sorted(answers) == [202] * 5 + [429] * 15
    assert len(counts) == 1


@pytest.mark.parametrize(("limit", "times"), [(100, 3), (11, 6)])
async def test_counts_are_older_where_the_limit_is_far(
    autojump_clock: MockClock, limit: int, times: int
) -> None:
    """One job every 1.5 s for 13.5 s: each is counted anew once half of the limit waits."""
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=limit))
    jobs = api.records.jobs
    counting, counts = jobs.pending_counts, list[float]()

    async def counted(*, product_name: str) -> PendingCounts:
        counts.append(trio.current_time())
        return await counting(product_name=product_name)

    jobs.pending_counts = counted  # type: ignore[method-assign] # watched
    for number in range(10):
        assert (await ask(api, number)).status == 202
        await trio.sleep(1.5)
    assert len(counts) == times


async def test_without_limits_nothing_is_counted() -> None:
    api = await an_api_with()

    async def counted(**_: object) -> PendingCounts:
        raise AssertionError("counted")

    api.records.jobs.pending_counts = counted  # type: ignore[method-assign] # watched
    assert (await ask(api, 1)).status == 202


async def test_rerun_is_admitted_like_any_other_job() -> None:
    api = await an_api_with(settings=HttpSettings(jobs_max_pending=1))
    job = await stored(api, await ask(api, 1))
    await end(api, job, JobStatus.FAILED)
    refused = await api.call("POST", f"/v1/fetcher/{job.id}/rerun")
    assert refused.problem == REFUSED
