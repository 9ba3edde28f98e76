"""One request to the bucket fails, of a job that completes, fails, or whose result is deleted."""

import time
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.s3_proxy import S3Call, S3Fault
from tests.faults.wire_rig import BIG_ROWS, BREAKING, QUICK, WIDE, Rig
from tests.servers.waiting import eventually_sync

SMALL_ROWS: Final = 1_000
FOREVER: Final = 1_000
TRIES: Final = 3
"""Of a call that is not waited for longer: after these an abort is left to the reaper."""


@dataclass(frozen=True, slots=True)
class S3Case:
    call: S3Call
    fault: S3Fault
    nth: int = 1
    times: int = 1

    @property
    def what(self) -> str:
        """The request, in words."""
        return f"{self.call} {self.nth}" if self.call is S3Call.PART else str(self.call)

    @property
    def met(self) -> str:
        """The fault, in words."""
        if self.times == FOREVER:
            return f"{self.fault}, for ever"
        return f"{self.fault}, {self.times} times" if self.times > 1 else str(self.fault)


@dataclass(frozen=True, slots=True)
class S3Ending:
    case: S3Case
    outcome: str
    """``completed``, or the code of the failure."""
    seconds: float


_FAILS: Final = (S3Fault.INTERNAL_ERROR, S3Fault.SLOW_DOWN, S3Fault.RESET)
_ANSWER_LOST: Final = (S3Fault.DONE_500, S3Fault.DONE_CUT)
_BODY: Final = (S3Fault.TORN, S3Fault.BAD_DIGEST)
_IN_200: Final = (S3Fault.ERROR_IN_200, S3Fault.DONE_ERROR_IN_200)
PARTS: Final = (1, 2, 3)

S3_CASES: Final = (
    *(S3Case(S3Call.CREATE, each) for each in (*_FAILS, *_ANSWER_LOST, S3Fault.DONE_TORN)),
    *(
        S3Case(S3Call.PART, each, nth=nth)
        for nth in PARTS
        for each in (*_FAILS, *_BODY, *_ANSWER_LOST, S3Fault.WRONG_ETAG)
    ),
    *(
        S3Case(S3Call.COMPLETE, each)
        for each in (*_FAILS, *_ANSWER_LOST, *_IN_200, S3Fault.DONE_TORN)
    ),
    *(S3Case(S3Call.PUT, each) for each in (*_FAILS, *_BODY, *_ANSWER_LOST)),
    *(S3Case(S3Call.ABORT, each) for each in (*_FAILS, *_ANSWER_LOST)),
    S3Case(S3Call.ABORT, S3Fault.INTERNAL_ERROR, times=TRIES),
    *(S3Case(S3Call.DELETE, each) for each in (*_FAILS, *_ANSWER_LOST)),
)
LONG_S3_CASES: Final = (
    S3Case(S3Call.PART, S3Fault.INTERNAL_ERROR, nth=2, times=FOREVER),
    S3Case(S3Call.COMPLETE, S3Fault.INTERNAL_ERROR, times=FOREVER),
    S3Case(S3Call.PUT, S3Fault.SLOW_DOWN, times=FOREVER),
)
"""A minute each: so long an upload waits for its store."""
UNAVAILABLE: Final = "storage_unavailable"
FAILING: Final = {S3Fault.WRONG_ETAG: UNAVAILABLE}
"""What a job cannot get over: each part is there under another name than the store said."""


def run_s3_case(rig: Rig, case: S3Case) -> S3Ending:
    fields: dict[str, list[str]] = WIDE
    if case.call in (S3Call.PUT, S3Call.DELETE):
        fields = QUICK
    elif case.call is S3Call.ABORT:
        fields = BREAKING
    rig.s3.do(lambda it: it.arm(case.call, case.fault, nth=case.nth, times=case.times))
    began_at = time.monotonic()
    [answer] = rig.post(fields, str(case))
    job_id = answer.body["jobId"]
    job = rig.ended(job_id, deadline_seconds=120)
    if case.call is S3Call.DELETE:
        delete_result(rig, job_id)
    seconds = time.monotonic() - began_at
    struck = rig.s3.do(lambda it: it.struck)
    assert struck == case.times or (case.times == FOREVER and struck > TRIES)
    rig.s3.do(lambda it: it.arm(case.call, None))
    expected = expected_code(case)
    outcome = str(job["failure"]["code"] if job["status"] == "failed" else job["status"])
    assert outcome == (expected or "completed"), job.get("failure")
    if case.call not in (S3Call.ABORT, S3Call.DELETE) and expected is None:
        check_rows(rig.opened(job_id), fields)
    return S3Ending(case, outcome, seconds)


def expected_code(case: S3Case) -> str | None:
    """What the job fails with, or none."""
    if case.call is S3Call.ABORT:
        return "unavailable"  # what the source's own failure, a division by zero, is told as
    return UNAVAILABLE if case.times == FOREVER else FAILING.get(case.fault)


def check_rows(opened: Any, fields: dict[str, list[str]]) -> None:
    [(table, rows)] = opened.items()
    assert [table] == list(fields)
    assert len(rows) == len({row["id"] for row in rows})
    assert len(rows) == (BIG_ROWS if fields is WIDE else SMALL_ROWS)


def delete_result(rig: Rig, job_id: str) -> None:
    """The store refused for a moment; nobody hears of it, and the object is gone."""
    answer = rig.api.call("DELETE", f"/v1/fetcher/{job_id}/result")
    assert answer.status == 204, answer.body
    eventually_sync(
        lambda: rig.objects(job_id) == [], deadline_seconds=30, what="the object is gone"
    )
    assert rig.api.job(job_id)["status"] == "completed"
