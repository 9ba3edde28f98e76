"""``python -m tests.faults.dying_worker --role=worker``: the real command, which kills itself.

A job asks for it by its metadata. With ``{"diesUntil": n}`` it takes the process along in each of
its first n attempts, where the object lies whole in the bucket and the record says nothing of it
yet: when the terminal state is about to be written. With ``{"diesAfter": n}`` the n-th attempt
dies once that is written, before it has told anybody or deleted anything.
"""

import json
import os
import signal

from fetcher.adapters.mongo.job_leases import MongoJobLeases
from fetcher.cli.app import main
from fetcher.domain.job_store import FinishAnswer, Lease
from fetcher.domain.jobs import JobStatus, TerminalOutcome

finish = MongoJobLeases.finish


async def die_or_finish(
    self: MongoJobLeases, lease: Lease, outcome: TerminalOutcome
) -> FinishAnswer:
    metadata = json.loads(outcome.event.payload)["metadata"]
    if outcome.status is JobStatus.COMPLETED and lease.attempt <= metadata.get("diesUntil", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    answer = await finish(self, lease, outcome)
    if lease.attempt == metadata.get("diesAfter"):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


if __name__ == "__main__":
    MongoJobLeases.finish = die_or_finish  # type: ignore[method-assign] # the point of this module
    main()
