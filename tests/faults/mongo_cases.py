"""One write of a job's record fails, in the manager or in the worker."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from tests.faults.mongo_proxy import Write, WriteFault
from tests.faults.wire_rig import SLOW, Rig


@dataclass(frozen=True, slots=True)
class MongoCase:
    process: str
    nth: int
    """Of the process's writes for this job, from 1."""
    fault: WriteFault


@dataclass(frozen=True, slots=True)
class MongoEnding:
    """What became of the job."""

    case: MongoCase
    repeats: bool
    what: str
    """The write in words."""
    statuses: tuple[int, ...]
    """Of its request, and of each repetition."""
    attempts: int
    seconds: float
    """From the request to its event."""


def run_mongo_case(
    rig: Rig, case: MongoCase, fields: Mapping[str, Sequence[str]] = SLOW
) -> MongoEnding | None:
    """None where a job has no such write."""
    proxy = rig.mongo[case.process]
    tag = f"{case.process} {case.nth} {case.fault}"
    proxy.do(lambda it: it.arm(case.fault, case.nth))
    began_at = time.monotonic()
    answers = rig.post(fields, tag)
    assert answers[-1].status in (200, 202), answers
    assert all(500 <= answer.status < 600 for answer in answers[:-1]), answers
    job = rig.ended(answers[-1].body["jobId"])
    seconds = time.monotonic() - began_at
    write = proxy.do(lambda it: it.struck)
    proxy.do(lambda it: it.arm(None))
    assert rig.jobs.count_documents({"metadata.case": tag}) == 1
    assert job["status"] == "completed", job.get("failure")
    if write is None:
        return None
    statuses = tuple(answer.status for answer in answers)
    return MongoEnding(case, rig.repeats, in_words(write), statuses, job["attempt"], seconds)


def sweep(rig: Rig, process: str) -> Iterator[MongoEnding]:
    """Every fault of every write of a whole job's life in that process."""
    for fault in WriteFault:
        for nth in count(1):
            ending = run_mongo_case(rig, MongoCase(process, nth, fault))
            if ending is None:
                break
            yield ending


def in_words(write: Write) -> str:
    """What the write records."""
    if write.command == "insert":
        return f"insert into `{write.collection}`"
    changed = set(write.changes.get("$set", {})) | set(write.changes.get("$unset", {}))
    for field, words in WORDS.items():
        if field in changed:
            return words.format(**write.changes.get("$set", {}))
    return f"update `{write.collection}`"


WORDS: Final = {
    "dispatched_at": "mark as dispatched",
    "status": "become {status}",
    "metadata.terminalEventPending": "mark its event as published",
    "event_lease_until": "claim its event",
    "lease_until": "renew the lease",
    "progress": "note progress",
}
"""By the first of these that it changes."""
