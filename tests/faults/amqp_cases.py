"""What is said of one message, or the message itself, is lost between us and the broker."""

import time
from dataclasses import dataclass
from itertools import product
from typing import Final

from tests.faults.amqp_proxy import AmqpFault, Spoken
from tests.faults.wire_rig import MANAGER, QUICK, WORKER, Rig, first_met


@dataclass(frozen=True, slots=True)
class AmqpCase:
    spoken: Spoken
    fault: AmqpFault

    @property
    def process(self) -> str:
        return MANAGER if self.spoken is Spoken.WORK else WORKER


@dataclass(frozen=True, slots=True)
class AmqpEnding:
    case: AmqpCase
    copies: int
    """Of the event; all have one id."""
    seconds: float
    """From the request to its event."""


OF_A_SETTLEMENT: Final = (AmqpFault.LOST, AmqpFault.CUT, AmqpFault.CHANNEL_CLOSED)
"""Nobody answers an acknowledgement."""
AMQP_CASES: Final = (
    *(AmqpCase(*each) for each in product((Spoken.WORK, Spoken.EVENT), AmqpFault)),
    *(AmqpCase(Spoken.SETTLEMENT, each) for each in OF_A_SETTLEMENT),
)


def run_amqp_case(rig: Rig, case: AmqpCase) -> AmqpEnding:
    """The job runs once, however often its message comes."""
    return first_met(lambda number: _run_job(rig, case, f"{case}, {number}"), what=str(case))


def _run_job(rig: Rig, case: AmqpCase, tag: str) -> AmqpEnding | None:
    proxy = rig.amqp[case.process]
    proxy.do(lambda it: it.arm(case.spoken, case.fault))
    began_at = time.monotonic()
    [answer] = rig.post(QUICK, tag)
    job_id = answer.body["jobId"]
    job = rig.ended(job_id)
    seconds = time.monotonic() - began_at
    assert (job["status"], job["attempt"]) == ("completed", 1), job.get("failure")
    if not proxy.do(lambda it: it.struck):
        return None
    return AmqpEnding(case, len(rig.said[job_id]), seconds)
