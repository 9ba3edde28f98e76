"""A nursery within a job, cancelled, tells in one group of the cancellation and of what failed.

On trio alone: asyncio's groups are either cancelled or failed.
"""

import pytest
import trio.testing

from fetcher_engine import DeadlineExceeded

from .loops import RealLoop, trio_alone

pytestmark = trio_alone


async def nursery_that_fails_when_cancelled() -> None:
    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while cancelled")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        await trio.sleep_forever()


def test_first_exception_is_raised_itself_although_a_nursery_fails_after_it(
    loop: RealLoop,
) -> None:
    first = KeyError("first")

    async def fails() -> None:
        await trio.testing.wait_all_tasks_blocked()
        raise first

    jobs = [nursery_that_fails_when_cancelled, fails]
    with pytest.raises(KeyError) as caught:
        loop.run(lambda: loop.concurrency.run_ordered(jobs, 2))
    assert caught.value is first
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_deadline_of_a_nursery_that_fails_when_cut_off_is_a_deadline(loop: RealLoop) -> None:
    with pytest.raises(DeadlineExceeded) as caught:
        loop.run(lambda: loop.concurrency.run_with_deadline(5, nursery_that_fails_when_cancelled))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_clean_up_of_a_nursery_that_fails_when_cut_off_is_swallowed(loop: RealLoop) -> None:
    async def main() -> float:
        began = trio.current_time()
        await loop.concurrency.run_shielded(5, nursery_that_fails_when_cancelled)
        return trio.current_time() - began

    assert loop.run(main) == 5


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("deadline", [None, 60.0])
def test_cancellation_goes_on_without_what_a_nursery_raised_meanwhile(
    loop: RealLoop, jobs: int, deadline: float | None
) -> None:
    waiting: list[bool] = []

    async def job() -> None:
        waiting.append(True)
        await nursery_that_fails_when_cancelled()

    async def ordered() -> None:
        await loop.concurrency.run_ordered([job] * jobs, jobs)

    async def main() -> None:
        await loop.concurrency.run_with_deadline(deadline, job if jobs == 1 else ordered)

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(waiting))) == "cancelled"


def test_group_of_the_jobs_own_making_is_an_exception_like_any_other(loop: RealLoop) -> None:
    own = ExceptionGroup("own", [ValueError()])

    async def fails() -> None:
        raise own

    for work in (
        lambda: loop.concurrency.run_ordered([fails], 1),
        lambda: loop.concurrency.run_with_deadline(5, fails),
    ):
        with pytest.raises(ExceptionGroup) as caught:
            loop.run(work)
        assert caught.value is own


class Fatal(BaseException):
    """What is neither a failure nor a cancellation."""


def test_what_is_fatal_is_never_taken_for_a_cancellation(loop: RealLoop) -> None:
    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise Fatal

    async def job() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        loop.run(lambda: loop.concurrency.run_with_deadline(5, job))
    assert [type(error) for error in caught.value.exceptions] == [Fatal]
