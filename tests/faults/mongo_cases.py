"""One write of a job's record fails, in the manager or in the worker."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tests.faults.mongo_proxy import WriteFault
from tests.faults.wire_rig import SLOW, Rig, first_met


@dataclass(frozen=True, slots=True)
class MongoCase:
    process: str
    what: str
    """The write, in its words."""
    fault: WriteFault


@dataclass(frozen=True, slots=True)
class MongoEnding:
    """What became of the job."""

    case: MongoCase
    statuses: tuple[int, ...]
    """Of its request, and of each repetition."""
    attempts: int
    seconds: float
    """From the request to its event."""


def run_mongo_case(rig: Rig, case: MongoCase) -> MongoEnding:
    return first_met(lambda number: _run_job(rig, case, f"{case}, {number}"), what=str(case))


def _run_job(rig: Rig, case: MongoCase, tag: str) -> MongoEnding | None:
    proxy = rig.mongo[case.process]
    proxy.do(lambda it: it.arm(case.fault, case.what))
    began_at = time.monotonic()
    answers = rig.post(SLOW, tag)
    assert answers[-1].status in (200, 202), answers
    assert all(500 <= answer.status < 600 for answer in answers[:-1]), answers
    job = rig.ended(answers[-1].body["jobId"])
    seconds = time.monotonic() - began_at
    is_struck = proxy.do(lambda it: it.struck) is not None
    proxy.do(lambda it: it.arm(None))
    assert rig.jobs.count_documents({"metadata.case": tag}) == 1
    assert (job["status"], job["takeovers"]) == ("completed", 0), job.get("failure")
    statuses = tuple(answer.status for answer in answers)
    return MongoEnding(case, statuses, job["attempt"], seconds) if is_struck else None


def sweep(rig: Rig) -> Iterator[MongoEnding]:
    """Every fault of every kind of write in a whole job's life."""
    for process, proxy in rig.mongo.items():
        proxy.do(lambda it: it.arm(None))
        [answer] = rig.post(SLOW, f"unharmed, for the {process}")
        rig.ended(answer.body["jobId"])
        writes = proxy.do(lambda it: list(it.writes))
        for what, fault in product(dict.fromkeys(each.words for each in writes), WriteFault):
            yield run_mongo_case(rig, MongoCase(process, what, fault))
