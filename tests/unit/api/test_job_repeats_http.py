"""The same request again: spec rest-api 9.4 to 9.6 and 17.5."""

import pytest
import trio
from trio.testing import MockClock

from fetcher.domain.errors import DuplicateActiveJob, PortUnavailable
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.json_values import JsonValue
from tests.unit.api.harness import Answered, a_job, a_request, an_api_with, end, stored

REPEAT = "Duplicate request detected - returning existing job"


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.COMPLETED])
async def test_repeat_within_five_minutes_finds_the_job(status: JobStatus) -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request()))
    await end(api, job, status)
    again = await api.ask(a_request())
    assert (again.status, again.json["jobId"]) == (200, str(job.id))
    assert (again.json["status"], again.json["message"]) == (str(status), REPEAT)
    assert len(api.hints) == 1


@pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
async def test_failed_and_cancelled_jobs_may_be_asked_for_again_at_once(status: JobStatus) -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request()))
    await end(api, job, status)
    again = await api.ask(a_request())
    assert again.status == 202
    assert again.json["jobId"] != str(job.id)


async def test_repeat_is_found_although_the_connection_is_gone() -> None:
    api = await an_api_with()
    await stored(api, await api.ask(a_request()))
    api.records.connections._state.connections.clear()  # type: ignore[attr-defined] # memory store
    assert (await api.ask(a_request())).status == 200


@pytest.mark.parametrize(
    ("status", "expected"), [(JobStatus.COMPLETED, 202), (JobStatus.PROCESSING, 200)]
)
async def test_after_six_minutes_only_an_active_job_counts(
    status: JobStatus, expected: int, autojump_clock: MockClock
) -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request()))
    await end(api, job, status)
    await trio.sleep(360)
    again = await api.ask(a_request())
    assert again.status == expected
    assert (again.json["jobId"] == str(job.id)) == (expected == 200)


async def test_order_of_map_keys_makes_no_difference_and_order_of_fields_does() -> None:
    api = await an_api_with("sales_db", "crm_db")
    first: dict[str, JsonValue] = {
        "sales_db": {"a": ["x"], "b": ["y", "z"]},
        "crm_db": {"c": ["i"]},
    }
    turned: dict[str, JsonValue] = {
        "crm_db": {"c": ["i"]},
        "sales_db": {"b": ["y", "z"], "a": ["x"]},
    }
    other: dict[str, JsonValue] = {
        "crm_db": {"c": ["i"]},
        "sales_db": {"b": ["z", "y"], "a": ["x"]},
    }
    made = await api.ask(a_request(mappedFields=first))
    assert (await api.ask(a_request(mappedFields=turned))).json["jobId"] == made.json["jobId"]
    assert (await api.ask(a_request(mappedFields=other))).status == 202
    noted = {"source": "acme-reports", "correlationId": "r-2"}
    assert (await api.ask(a_request(mappedFields=first, metadata=noted))).status == 202


async def test_options_that_change_values_make_another_job() -> None:
    api = await an_api_with()
    made = await api.ask(a_request())
    assert (await api.ask(a_request(options={}))).json["jobId"] == made.json["jobId"]
    same = await api.ask(a_request(options={"values": "compatible", "limits": {}}))
    assert same.json["jobId"] == made.json["jobId"]
    assert (await api.ask(a_request(options={"values": "natural"}))).status == 202


async def test_twenty_identical_posts_at_once_make_one_job() -> None:
    api = await an_api_with()
    answers: list[Answered] = []

    async def post() -> None:
        answers.append(await api.ask(a_request()))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(post)
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    assert len({answer.json["jobId"] for answer in answers}) == 1
    assert len(api.hints) == 1


class Conflicts:
    """A job store whose insert meets an active twin so many times."""

    def __init__(self, times: int, found: Job | None = None) -> None:
        self.times = times
        self.found = found
        self.inserted: list[Job] = []

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        return None

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        return self.found

    async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
        self.times -= 1
        if self.times >= 0:
            raise DuplicateActiveJob("twin")
        self.inserted.append(job)


async def test_conflict_on_insert_answers_with_the_active_job() -> None:
    found = a_job(status=JobStatus.PROCESSING)
    api = await an_api_with(jobs=Conflicts(1, found))
    answered = await api.ask(a_request())
    assert (answered.status, answered.json["jobId"]) == (200, str(found.id))
    assert (answered.json["status"], api.hints) == ("processing", [])


async def test_conflict_whose_job_ended_meanwhile_is_inserted_once_more() -> None:
    jobs = Conflicts(1)
    api = await an_api_with(jobs=jobs)
    answered = await api.ask(a_request())
    assert answered.status == 202
    assert api.hints == [jobs.inserted[0].id]


class EndedTwin(Conflicts):
    """The same request of somebody else comes and ends while ours is between its first look and its
    insert: after so many conflicts, or during the test of the connection."""

    looks = 0

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        self.looks += 1
        return self.found if self.looks > 1 and self.times <= 0 else None

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        return None


@pytest.mark.parametrize("conflicts", [0, 1])
@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED])
async def test_twin_that_ended_before_the_insert_is_found(
    status: JobStatus, conflicts: int
) -> None:
    twin = a_job(status=status)
    jobs = EndedTwin(conflicts, twin)
    api = await an_api_with(jobs=jobs)
    answered = await api.ask(a_request())
    if status is JobStatus.COMPLETED:
        assert (answered.status, answered.json["jobId"]) == (200, str(twin.id))
        assert (jobs.inserted, api.hints) == ([], [])
    else:
        assert (answered.status, len(jobs.inserted)) == (202, 1)


async def test_second_conflict_without_a_job_is_given_up() -> None:
    api = await an_api_with(jobs=Conflicts(9))
    answered = await api.ask(a_request())
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert api.hints == []


@pytest.mark.parametrize("method", ["find_latest_by_hash", "insert"])
async def test_job_store_that_is_away_is_a_503_without_a_hint(method: str) -> None:
    class Away(Conflicts):
        async def find_latest_by_hash(
            self, request_hash: str, *, within_seconds: float
        ) -> Job | None:
            if method == "find_latest_by_hash":
                raise PortUnavailable("down")
            return None

        async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
            raise PortUnavailable("down")

    api = await an_api_with(jobs=Away(0))
    answered = await api.ask(a_request())
    assert answered.problem == (503, "FET-0003", "Service Unavailable")
    assert api.hints == []


async def test_connection_store_that_is_away_is_a_503_without_a_hint() -> None:
    class Away:
        async def find_by_config_names(self, names: object) -> list[object]:
            raise PortUnavailable("down")

    api = await an_api_with(connections=Away())
    answered = await api.ask(a_request())
    assert answered.problem == (503, "FET-0003", "Service Unavailable")
    assert answered.headers["Retry-After"] == "5"
    assert api.hints == []
    assert (await api.get("/v1/fetcher")).json["items"] == []
