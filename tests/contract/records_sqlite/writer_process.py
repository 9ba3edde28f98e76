"""Writes records until it is killed, and says after each write what has been answered."""

import sys
from pathlib import Path

import trio

from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.domain.jobs import JobStatus
from tests.contract.records.builders import claimed, completed, ended, inserted


def tell(status: JobStatus, job_id: object) -> None:
    sys.stdout.write(f"{status.value} {job_id}\n")
    sys.stdout.flush()


async def write_for_ever(path: Path) -> None:
    async with open_sqlite_records(path) as store:
        while True:
            tell(JobStatus.PENDING, (await inserted(store)).id)
            claim = await claimed(store, await inserted(store))
            tell(JobStatus.PROCESSING, claim.job.id)
            tell(JobStatus.COMPLETED, (await ended(store, completed())).id)


if __name__ == "__main__":
    trio.run(write_for_ever, Path(sys.argv[1]))
