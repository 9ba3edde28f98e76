"""The order of ended jobs, read while jobs end (design section 8)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import Job, JobStatus
from fetcher.ports import JobRecords
from fetcher.queries.ended_jobs import PAGE, EndedJobs, cursor_of
from tests.unit.api.harness import START, a_job


@dataclass
class EndedRecords:
    """Ended jobs as the store sees them; a test adds what becomes visible."""

    jobs: list[Job] = field(default_factory=list)
    reads: int = 0

    def add(self, *seconds: float, **changed: Any) -> list[Job]:
        """Jobs that ended so many seconds after START."""
        made = [
            a_job(
                status=JobStatus.COMPLETED,
                completed_at=START + timedelta(seconds=second),
                **changed,
            )
            for second in seconds
        ]
        self.jobs += made
        return made

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        self.reads += 1
        ordered = sorted(self.jobs, key=_place)
        found = [
            job
            for job in ordered
            if (after is None or _place(job) > (after.completed_at, after.job_id.int))
            and (product_name is None or job.product_name == product_name)
        ]
        return found[:limit]

    async def latest_ended(self) -> EndedCursor | None:
        return cursor_of(max(self.jobs, key=_place)) if self.jobs else None


def _place(job: Job) -> tuple[Any, int]:
    return (job.completed_at, job.id.int)


async def reader_from_now(records: EndedRecords, product: str | None = None) -> EndedJobs:
    return await EndedJobs.from_now(cast("JobRecords", records), product_name=product)


def ids(jobs: Sequence[Job]) -> list[object]:
    return [job.id for job in jobs]


async def test_reader_from_now_gives_nothing_that_ended_before() -> None:
    records = EndedRecords()
    records.add(0, 1, 1.5)
    reader = await reader_from_now(records)
    assert await reader.next() == []
    new = records.add(3, 4)
    assert ids(await reader.next()) == ids(new)
    assert await reader.next() == []


async def test_reader_of_an_empty_store_gives_the_first_that_ends() -> None:
    records = EndedRecords()
    reader = await reader_from_now(records)
    assert await reader.next() == []
    new = records.add(0)
    assert ids(await reader.next()) == ids(new)


async def test_one_that_becomes_visible_late_is_not_passed_over() -> None:
    records = EndedRecords()
    reader = await reader_from_now(records)
    records.add(10)
    await reader.next()
    late = records.add(9)
    assert ids(await reader.next()) == ids(late)
    assert await reader.next() == []


async def test_late_one_is_found_although_it_ended_before_the_reader_began() -> None:
    records = EndedRecords()
    records.add(10)
    reader = await reader_from_now(records)
    late = records.add(9.5)
    assert ids(await reader.next()) == ids(late)


async def test_reader_goes_on_strictly_after_a_place() -> None:
    records = EndedRecords()
    first, second, third = records.add(0, 1, 1)
    expected = sorted([second, third], key=_place)
    reader = EndedJobs.after(cast("JobRecords", records), cursor_of(first), product_name=None)
    assert ids(await reader.next()) == ids(expected)
    reader = EndedJobs.after(cast("JobRecords", records), cursor_of(expected[0]), product_name=None)
    assert ids(await reader.next()) == ids(expected[1:])
    assert await reader.next() == []


async def test_more_than_a_page_comes_page_by_page_without_repeats() -> None:
    records = EndedRecords()
    reader = await reader_from_now(records)
    # All within the overlap, so that each look begins before what was given already.
    made = records.add(*(number / 1000 for number in range(2 * PAGE + 50)))
    given: list[object] = []
    while page := await reader.next():
        assert len(page) <= PAGE
        given += ids(page)
    assert given == ids(made)


async def test_reader_of_a_product_sees_that_product_only() -> None:
    records = EndedRecords()
    reader = await reader_from_now(records, "acme-reports")
    mine = records.add(1)
    records.add(2, metadata={"source": "other"})
    assert ids(await reader.next()) == ids(mine)


def test_a_job_that_has_not_ended_has_no_place() -> None:
    with pytest.raises(ValueError, match="not ended"):
        cursor_of(a_job())
