"""``python -m tests.faults.dying_worker --role=worker``: the real command, which kills itself.

It dies where an attempt's object lies whole in the bucket and its record says nothing of it yet:
when the terminal state of a completed attempt is about to be written. A job that asks for it by its
metadata (``{"diesUntil": n}``) takes the process along in each of its first n attempts.
"""

import json
import os
import signal

from fetcher.adapters.mongo.job_leases import MongoJobLeases
from fetcher.cli.app import main
from fetcher.domain.jobs import FinishAnswer, JobStatus, Lease, TerminalOutcome

finish = MongoJobLeases.finish


async def die_or_finish(
    self: MongoJobLeases, lease: Lease, outcome: TerminalOutcome
) -> FinishAnswer:
    metadata = json.loads(outcome.event.payload)["metadata"]
    if outcome.status is JobStatus.COMPLETED and lease.attempt <= metadata.get("diesUntil", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    return await finish(self, lease, outcome)


if __name__ == "__main__":
    MongoJobLeases.finish = die_or_finish  # type: ignore[method-assign] # the point of this module
    main()
