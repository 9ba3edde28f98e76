"""``python -m tests.canaries.crashing --role=all``: the real command, in which things crash.

What they say in crashing holds every secret of the environment, as any library might. An actor
crashes at its first run, and the list of jobs, and the first attempt of a job with
the metadata ``{"crashes": true}``;
after an orderly way down the process itself ends so.
"""

import json
import os
from typing import Any

import trio

from fetcher.actors.reaper import Reaper
from fetcher.actors.supervisor import Supervisor
from fetcher.api import job_routes
from fetcher.cli.app import main
from fetcher.commands.run_job import RunJob
from fetcher.domain.job_store import JobPage, Lease
from fetcher.domain.jobs import Job, Parking, TerminalOutcome
from fetcher.settings import SECRET_NAMES
from tests.canaries.fields import MASTER_KEY
from tests.canaries.spelling import MARK, respelt

QUOTED = ("plain", "JSON", "JSON, as it is", "an address", "Python", "base64", "hex")
"""As those spell it who tell of a failure."""


class Crash(Exception):
    """Of a library that quotes what it was given."""


def crash() -> Crash:
    given = [os.environ.get(name, "") for name in sorted(SECRET_NAMES)]
    secrets = [value for value in given if MARK in value]
    told = [spelt for each in [*secrets, MASTER_KEY] for spelt in map(respelt(each).get, QUOTED)]
    made = Crash(*told)
    made.__cause__ = ConnectionError(*told)
    made.add_note(json.dumps(told))
    return made


reap = Reaper.run
supervise = Supervisor.run
run = RunJob.run
crashed: list[str] = []


async def crash_once(self: Reaper, *, task_status: "trio.TaskStatus[None]") -> None:
    if not crashed:
        crashed.append("reaper")
        raise crash()
    await reap(self, task_status=task_status)


async def crash_at_the_end(self: Supervisor) -> None:
    await supervise(self)
    raise crash()


async def crash_or_run(self: RunJob, job: Job, lease: Lease) -> TerminalOutcome | Parking:
    if job.metadata.get("crashes") and lease.attempt == 1:
        raise crash()
    return await run(self, job, lease)


async def crash_instead(*_: object) -> JobPage:
    raise crash()


if __name__ == "__main__":
    replaced: tuple[tuple[Any, str, object], ...] = (
        (Reaper, "run", crash_once),
        (Supervisor, "run", crash_at_the_end),
        (RunJob, "run", crash_or_run),
        (job_routes, "list_jobs", crash_instead),
    )
    for owner, name, crashing in replaced:
        setattr(owner, name, crashing)
    main()
