"""GET /v1/fetcher: pages of jobs."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fetcher.api.job_list_parameters import cursor_text, parse_cursor
from fetcher.api.services import HttpSettings
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobCursor
from fetcher.domain.jobs import FailureFacts, Job, JobStatus, ResultFacts
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import JOBS, START, Api, a_job, an_api
from tests.unit.api.results import put

HOUR = timedelta(hours=1)


async def some_jobs(api: Api, count: int = 5) -> list[Job]:
    return [
        await put(api, a_job(created_at=START + number * HOUR, request_hash=str(number)))
        for number in range(count)
    ]


async def listed(api: Api, headers: dict[str, str] | None = None, **query: str) -> list[str]:
    answered = await api.get(f"{JOBS}?{urlencode(query)}", headers)
    assert answered.status == 200, answered.raw
    return [item["id"] for item in answered.json["items"]]


async def test_pages_follow_each_other_by_the_cursor() -> None:
    api = an_api()
    jobs = await some_jobs(api)
    for order, expected in (("desc", jobs[::-1]), ("ASC", jobs)):
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            path = f"{JOBS}?{urlencode({'limit': '2', 'sortOrder': order, 'cursor': cursor})}"
            page = (await api.get(path)).json
            assert page["limit"] == 2
            seen += [item["id"] for item in page["items"]]
            cursor = page.get("nextCursor")
        assert seen == [str(job.id) for job in expected]


async def test_jobs_of_one_instant_are_neither_repeated_nor_lost() -> None:
    api = an_api()
    jobs = [await put(api, a_job(request_hash=str(n))) for n in range(5)]
    first = (await api.get(f"{JOBS}?limit=3")).json
    second = (await api.get(f"{JOBS}?limit=3&cursor={first['nextCursor']}")).json
    seen = [item["id"] for item in first["items"] + second["items"]]
    assert sorted(seen) == sorted(str(job.id) for job in jobs)
    assert "nextCursor" not in second


async def test_summary_tells_what_became_of_a_job() -> None:
    api = an_api()
    done = await put(
        api,
        a_job(
            status=JobStatus.COMPLETED,
            mapped_fields={"b_db": {"t": ("x",)}, "a_db": {"t": ("x",)}},
            started_at=START + timedelta(seconds=1),
            completed_at=START + timedelta(seconds=2),
            result=ResultFacts(path="p", hmac="h", size_bytes=9, row_count=3, key_version="1"),
            result_deleted_at=START + timedelta(seconds=3),
        ),
    )
    failed = await put(
        api,
        a_job(
            created_at=START - HOUR,
            status=JobStatus.FAILED,
            failure=FailureFacts(message="a_db: connect failed", code="connect", source="a_db"),
        ),
    )
    body = (await api.get(JOBS)).json
    assert body == {
        "items": [
            {
                "id": str(done.id),
                "status": "completed",
                "source": "acme-reports",
                "connections": ["a_db", "b_db"],
                "createdAt": "2026-03-14T09:26:53.123456Z",
                "startedAt": "2026-03-14T09:26:54.123456Z",
                "completedAt": "2026-03-14T09:26:55.123456Z",
                "sizeBytes": 9,
                "rowCount": 3,
                "resultDeletedAt": "2026-03-14T09:26:56.123456Z",
            },
            {
                "id": str(failed.id),
                "status": "failed",
                "source": "acme-reports",
                "connections": ["sales_db"],
                "createdAt": "2026-03-14T08:26:53.123456Z",
                "error": {"message": "a_db: connect failed", "code": "connect", "source": "a_db"},
            },
        ],
        "limit": 10,
    }


async def test_status_may_be_several_in_either_form() -> None:
    api = an_api()
    made = {
        status: await put(api, a_job(status=status, request_hash=status.value))
        for status in JobStatus
    }
    wanted = sorted(str(made[status].id) for status in (JobStatus.FAILED, JobStatus.PENDING))
    for query in (
        "status=failed,pending",
        "status=failed&status=Pending",
        "status=failed,%20pending,",
    ):
        found = (await api.get(f"{JOBS}?{query}")).json["items"]
        assert sorted(item["id"] for item in found) == wanted
    assert len((await api.get(f"{JOBS}?status=")).json["items"]) == len(JobStatus)


async def test_products_are_compared_without_case_and_the_header_narrows() -> None:
    api = an_api()
    ours = await put(api, a_job(metadata={"source": "Acme-Reports"}))
    other = await put(api, a_job(metadata={"source": "billing"}, request_hash="1"))
    assert await listed(api, source="ACME-reports") == [str(ours.id)]
    assert await listed(api, {"X-Product-Name": "Billing"}) == [str(other.id)]
    assert await listed(api, {"X-Product-Name": "acme-reports"}, source="Acme-Reports") == [
        str(ours.id)
    ]
    assert await listed(api, {"X-Product-Name": "billing"}, source="acme-reports") == []
    refused = await api.get(JOBS, {"X-Product-Name": "a b"})
    assert refused.problem == (400, "FET-0403", "Invalid header")


async def test_connection_is_one_that_the_job_reads_from() -> None:
    api = an_api()
    both = await put(api, a_job(mapped_fields={"a.b": {"t": ("x",)}, "c": {"t": ("x",)}}))
    await put(api, a_job(mapped_fields={"d": {"t": ("x",)}}, request_hash="1"))
    assert await listed(api, connection="a.b") == [str(both.id)]
    assert await listed(api, connection="c") == [str(both.id)]
    assert await listed(api, connection="A.B") == []


async def test_times_are_dates_or_instants() -> None:
    api = an_api()
    jobs = [str(job.id) for job in await some_jobs(api, 4)]
    assert await listed(api, startDate="2026-03-14T11:00:00Z") == jobs[:1:-1]
    assert await listed(api, endDate="2026-03-14t13:00:00.5+02:00") == jobs[1::-1]
    # An instant itself is in at the start, and out at the end.
    instant = "2026-03-14T10:26:53.123456789Z"
    assert await listed(api, startDate=instant) == jobs[:0:-1]
    assert await listed(api, endDate=instant) == jobs[:1]
    assert await listed(api, startDate=instant, endDate=instant) == []
    assert await listed(api, startDate="2026-03-14", endDate="2026-03-14") == jobs[::-1]
    assert await listed(api, startDate="2026-03-15") == []
    assert await listed(api, startDate="2020-01-01", endDate="2027-01-01") == jobs[::-1], "years"


@pytest.mark.parametrize(
    ("query", "code", "name"),
    [
        ("limit=0", "FET-0405", "limit"),
        ("limit=x", "FET-0405", "limit"),
        ("limit=101", "FET-0406", "limit"),
        ("sortOrder=up", "FET-0407", "sortOrder"),
        ("startDate=2026-02-30", "FET-0408", "startDate"),
        ("endDate=2026-03-14T10:00:00", "FET-0408", "endDate"),
        ("endDate=2026-03-14T25:00:00Z", "FET-0408", "endDate"),
        ("endDate=0001-01-01T00:00:00%2B23:00", "FET-0408", "endDate"),
        ("startDate=2026-03-15&endDate=2026-03-14", "FET-0409", "endDate"),
        ("status=done", "FET-0405", "status"),
        ("status=failed,done", "FET-0405", "status"),
        ("cursor=abc", "FET-0405", "cursor"),
        ("cursor=" + "_" * 32, "FET-0405", "cursor"),
        ("cursor=" + "A" * 3000, "FET-0405", "cursor"),
        ("connection=" + "x" * 257, "FET-0405", "connection"),
        ("source=a%00b", "FET-0405", "source"),
        ("$where=1", "FET-0405", "$where"),
    ],
)
async def test_what_is_no_query_names_its_parameter(query: str, code: str, name: str) -> None:
    answered = await an_api().get(f"{JOBS}?{query}")
    assert (answered.status, answered.json["code"]) == (400, code)
    assert name in answered.json["message"]


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("limit=0", "must be a whole number of at least 1"),
        ("status=done", "must be of pending, processing, completed, failed, cancelled"),
    ],
)
async def test_what_a_parameter_must_be_is_told(query: str, needs: str) -> None:
    answered = await an_api().get(f"{JOBS}?{query}")
    name = query.partition("=")[0]
    assert answered.json["message"] == f"invalid query parameter {name}: {needs}"


async def test_limit_is_the_host_s() -> None:
    api = an_api(settings=HttpSettings(max_page_limit=3))
    await some_jobs(api)
    assert len(await listed(api, limit="3")) == 3
    assert (await api.get(f"{JOBS}?limit=4")).json["code"] == "FET-0406"


@given(
    microseconds=st.integers(0, 8029 * 365 * 24 * 3600 * 10**6),
    job_id=st.uuids(),
)
def test_cursor_reads_back_what_it_tells(microseconds: int, job_id: UUID) -> None:
    created_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    cursor = JobCursor(created_at=created_at, job_id=JobId(job_id))
    assert parse_cursor(cursor_text(cursor)) == cursor


@given(text=st.text(max_size=40) | st.text("ABCabc_-09", min_size=32, max_size=32))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    read: list[str] = []
    with suppress(FetcherError):
        read.append(cursor_text(parse_cursor(text)))
    assert read in ([], [text])


@given(
    parameters=st.dictionaries(
        st.sampled_from(
            ["limit", "sortOrder", "startDate", "endDate", "cursor", "status", "source", "page"]
        ),
        st.text(max_size=20) | st.integers().map(str) | st.datetimes().map(lambda d: f"{d}Z"),
        max_size=4,
    )
)
@example(parameters={"endDate": "9999-12-31", "startDate": "9999-12-31"})
@example(parameters={"endDate": "9999-12-31T23:59:59Z", "startDate": "0001-01-01"})
@example(parameters={"startDate": "0001-01-01T00:00:00+23:59"})
async def test_any_query_is_answered_by_a_page_or_refused(parameters: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
    talk, body = await answer_of(an_api().app, a_scope("GET", JOBS.encode(), query=query.encode()))
    assert talk.status in (200, 400), body
