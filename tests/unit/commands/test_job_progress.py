"""How the record hears of what an attempt reads: at most every two seconds."""

import trio
from trio.testing import MockClock

from fetcher.adapters.memory.records import open_memory_records
from fetcher.commands.job_progress import ProgressBoard, keep_noted
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import Claimed, Lease
from fetcher.domain.jobs import Progress, TableProgress
from fetcher.ports import JobLeases
from tests.contract.records.builders import a_job, now


class CountedLeases:
    """Notes through to the records, when it is up; each try with its time."""

    def __init__(self, leases: JobLeases) -> None:
        self._leases = leases
        self.tries: list[float] = []
        self.is_down = False

    async def note_progress(self, lease: Lease, progress: Progress) -> bool:
        self.tries.append(trio.current_time())
        if self.is_down:
            raise PortUnavailable("the record store is away")
        return await self._leases.note_progress(lease, progress)


class Noting:
    """A claimed job whose board is kept noted."""

    def __init__(self) -> None:
        self.records = open_memory_records(now)
        self.leases = CountedLeases(self.records.leases)
        self.counted: list[tuple[int, int]] = []
        self.board = ProgressBoard(lambda rows, size_bytes: self.counted.append((rows, size_bytes)))

    async def begin(self, nursery: trio.Nursery) -> None:
        self.job = a_job()
        await self.records.jobs.insert(self.job)
        claim = await self.records.leases.claim(self.job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        self.lease = claim.lease
        nursery.start_soon(self._keep)

    async def _keep(self) -> None:
        await keep_noted(self.board, leases=self.leases, lease=self.lease)  # type: ignore[arg-type] # the part that is used

    async def noted(self) -> Progress:
        job = await self.records.jobs.get(self.job.id)
        assert job is not None
        return job.progress


def one(rows: int, size: int) -> Progress:
    return {"sales_db": {"orders": TableProgress(rows=rows, bytes=size)}}


async def test_many_pieces_are_one_note_every_two_seconds(autojump_clock: MockClock) -> None:
    noting = Noting()
    async with trio.open_nursery() as nursery:
        await noting.begin(nursery)
        for piece in range(1, 20):
            noting.board("sales_db", "orders", piece, piece * 10)
            await trio.sleep(0.3)
        assert await noting.noted() == one(14, 140)
        assert noting.leases.tries == [2.0, 4.0]
        assert noting.counted == [(1, 10)] * 19
        nursery.cancel_scope.cancel()


async def test_nothing_new_is_not_noted_again(autojump_clock: MockClock) -> None:
    noting = Noting()
    async with trio.open_nursery() as nursery:
        await noting.begin(nursery)
        await trio.sleep(5)
        assert noting.leases.tries == []
        noting.board("sales_db", "orders", 1, 10)
        await trio.sleep(20)
        assert len(noting.leases.tries) == 1
        nursery.cancel_scope.cancel()


async def test_an_outage_of_the_records_is_sat_out(autojump_clock: MockClock) -> None:
    noting = Noting()
    async with trio.open_nursery() as nursery:
        await noting.begin(nursery)
        noting.leases.is_down = True
        noting.board("sales_db", "orders", 1, 10)
        await trio.sleep(7)
        assert await noting.noted() == {}
        noting.leases.is_down = False
        await trio.sleep(2)
        assert await noting.noted() == one(1, 10)
        nursery.cancel_scope.cancel()


async def test_a_lost_lease_ends_it(autojump_clock: MockClock) -> None:
    noting = Noting()
    async with trio.open_nursery() as nursery:
        await noting.begin(nursery)
        await noting.records.leases.release(noting.lease)
        noting.board("sales_db", "orders", 1, 10)
        await trio.sleep(10)
    assert len(noting.leases.tries) == 1
