"""What happens in one run: events on a time line, drawn by hypothesis."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.simulation.expiry import JOB_SECONDS, RESULT_SECONDS, SWEEP_SECONDS
from tests.simulation.faults import Fate, Part
from tests.simulation.happenings import (
    Cancel,
    Create,
    DeleteResult,
    DrainWorker,
    Event,
    Fail,
    KillManager,
    KillWorker,
    LockResults,
    LoseConsumer,
    PurgeQueue,
    RefuseLogins,
    Repair,
    ReturnPublishes,
    Stall,
    StartMissing,
    TakeAway,
    TurnClock,
)
from tests.simulation.sources import SOURCES
from tests.simulation.world import WORKERS

MOST_REQUESTS = 6

Timed = tuple[tuple[float, Event], ...]
"""Each event, and how many seconds it comes after the one before."""


@dataclass(frozen=True)
class Program:
    """``seed`` decides all that chance decides: delays, random faults, the order of tasks."""

    seed: int
    rate: float
    events: Timed
    expires: bool = False
    """Whether results, and then jobs, are deleted after their time."""


OPERATIONS = (
    "insert",
    "claim_due",
    "publish work",
    "mark_dispatched",
    "consume",
    "claim",
    "renew",
    "check",
    "find_by_config_names",
    "part",
    "complete",
    "head",
    "finish",
    "release",
    "ack",
    "requeue",
    "delete",
    "note",
    "find_expired",
    "publish event",
    "mark_published",
    "postpone",
    "request_cancel",
    "find_due",
    "clear",
    "find",
    "change",
    "park",
    "wake_parked",
    "is_in_use",
    "update",
)
"""Each step of a job's way. ``requeue`` is a delivery's and a record's."""

_workers = st.integers(0, WORKERS - 1)
_requests: st.SearchStrategy[Event] = st.builds(
    Create, st.sampled_from(SOURCES), st.integers(0, MOST_REQUESTS - 1)
)
_gaps = st.sampled_from([0.0, 0.01, 0.03, 0.2, 0.2, 1.0, 1.0, 3.0, 12.0, 25.0, 61.0])
_seeds = st.integers(0, 2**32 - 1)
_operations = st.sampled_from(OPERATIONS)
_skips = st.sampled_from([0, 0, 1, 3])
_deaths: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Fail, _operations, st.sampled_from([Fate.DIES_BEFORE, Fate.DIES_AFTER]), _skips, st.just(1)
    ),
    st.builds(KillWorker, _workers),
    st.just(KillManager()),
    st.just(StartMissing()),
)
_failures = st.builds(
    Fail,
    _operations,
    st.sampled_from([Fate.FAILED, Fate.UNHEARD, Fate.LATE]),
    _skips,
    st.sampled_from([1, 1, 2, 6]),
)
_REFUSING = ("fast_db", "slow_db")
_refused_requests = st.builds(Create, st.sampled_from(_REFUSING), st.integers(0, MOST_REQUESTS - 1))
_refusals: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        RefuseLogins,
        st.sampled_from(_REFUSING),
        st.sampled_from([5.0, 60.0, 300.0, 3000.0]),
        st.sampled_from([0, 3, 5, 5]),
    ),
    st.builds(Repair, st.sampled_from(_REFUSING)),
)
_everything: st.SearchStrategy[Event] = st.one_of(
    _requests,
    _failures,
    _failures,
    _deaths,
    st.builds(Cancel, st.integers(0, MOST_REQUESTS)),
    st.builds(DrainWorker, _workers),
    st.builds(TurnClock, st.sampled_from([-3600.0, -70.0, -5.0, 5.0, 70.0, 3600.0])),
    st.builds(TakeAway, st.sampled_from(Part), st.sampled_from([2.0, 20.0, 90.0])),
    st.builds(Stall, _workers, st.sampled_from([3.0, 30.0, 80.0])),
    st.builds(LoseConsumer, _workers),
    st.builds(ReturnPublishes, st.integers(1, 3)),
    st.just(PurgeQueue()),
    _refusals,
)


def _program(
    events: st.SearchStrategy[Event],
    rates: Sequence[float],
    requests: st.SearchStrategy[Event] = _requests,
) -> st.SearchStrategy[Program]:
    """Some requests come first, but faults may be laid for them before."""

    def timed(what: st.SearchStrategy[Event], least: int, most: int) -> st.SearchStrategy[Timed]:
        return st.lists(st.tuples(_gaps, what), min_size=least, max_size=most).map(tuple)

    laid, asked = timed(events, 0, 5), timed(requests, 1, 4)
    later = timed(st.one_of(events, events, requests), 5, 25)
    everything = st.tuples(laid, asked, later).map(lambda parts: (*parts[0], *parts[1], *parts[2]))
    return st.builds(Program, _seeds, st.sampled_from(rates), everything)


ALL_FAULTS = _program(_everything, (0.0, 0.02, 0.1))


def _down_from_the_start(source: str) -> st.SearchStrategy[Timed]:
    """Its breaker is open before several jobs ask for it."""
    down = st.builds(
        RefuseLogins, st.just(source), st.sampled_from([60.0, 300.0, 3000.0]), st.just(5)
    )
    numbers = st.permutations(range(MOST_REQUESTS)).map(lambda order: order[:3])
    return st.builds(
        lambda event, order: ((0.0, event), *((0.2, Create(source, n)) for n in order)),
        down,
        numbers,
    )


REFUSED_LOGINS = st.builds(
    lambda down, program: replace(program, events=(*down, *program.events)),
    st.sampled_from(_REFUSING).flatmap(_down_from_the_start),
    _program(
        st.one_of(
            _refusals,
            _deaths,
            st.builds(Cancel, st.integers(0, MOST_REQUESTS)),
            st.builds(DrainWorker, _workers),
        ),
        (0.0, 0.0, 0.02),
        _refused_requests,
    ),
)
DEATHS_ALONE = _program(_deaths, (0.0,))

_expiry_failures = st.builds(
    Fail,
    st.sampled_from(["find_results", "get", "delete", "mark_result_deleted", "delete_jobs"]),
    st.sampled_from(Fate),
    _skips,
    st.sampled_from([1, 1, 2, 6]),
)
_long_outages: st.SearchStrategy[Event] = st.builds(
    TakeAway, st.sampled_from([Part.BROKER, Part.OBJECTS]), st.just(1.5 * JOB_SECONDS)
)
_in_an_outage: st.SearchStrategy[Timed] = st.builds(
    lambda outage, meanwhile: (outage, *meanwhile),
    st.tuples(st.sampled_from([0.0, 1.0, 3.0]), _long_outages),
    st.lists(
        st.tuples(
            st.sampled_from([0.2, 3.0, 12.0]),
            st.one_of(
                _requests, st.builds(Cancel, st.integers(0, MOST_REQUESTS)), st.just(StartMissing())
            ),
        ),
        max_size=4,
    ),
)
_waits: st.SearchStrategy[Timed] = st.lists(
    st.tuples(
        st.sampled_from([61.0, RESULT_SECONDS, 5 * SWEEP_SECONDS, JOB_SECONDS]),
        st.just(StartMissing()),
    ),
    max_size=2,
).map(tuple)
_after_the_time: st.SearchStrategy[Event] = st.one_of(
    _expiry_failures,
    _expiry_failures,
    _deaths,
    _requests,
    st.builds(DeleteResult, st.integers(0, MOST_REQUESTS)),
    st.just(LockResults()),
    st.builds(TakeAway, st.sampled_from(Part), st.sampled_from([20.0, 90.0])),
    st.builds(TurnClock, st.sampled_from([-3600.0, -70.0, 70.0])),
)
EXPIRING = st.builds(
    lambda program, *parts: replace(
        program,
        events=(*program.events, *(event for part in parts for event in part)),
        expires=True,
    ),
    _program(_everything, (0.0, 0.02, 0.1)),
    st.one_of(st.just(()), _in_an_outage),
    _waits,
    st.lists(st.tuples(_gaps, _after_the_time), min_size=3, max_size=20).map(tuple),
)
"""Everything may fail, and then what deletes, while results and jobs have their time."""
