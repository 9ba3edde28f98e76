"""Programs of faults over the real actors: nothing is lost, stuck, doubled or half there.

How to replay a failing program is told in docs/reliability.md.
"""

from dataclasses import replace
from typing import Final

import hypothesis
import pytest
import structlog
from hypothesis import Phase

from tests.scale import scaled
from tests.simulation.expiry import JOB_SECONDS
from tests.simulation.faults import Fate, Part
from tests.simulation.happenings import (
    Cancel,
    Create,
    DrainWorker,
    Fail,
    KillWorker,
    LockResults,
    LoseConsumer,
    RefuseLogins,
    Repair,
    StartMissing,
    TakeAway,
    TurnClock,
)
from tests.simulation.programs import (
    ALL_FAULTS,
    DEATHS_ALONE,
    EXPIRING,
    REFUSED_LOGINS,
    Program,
    Timed,
)
from tests.simulation.running import CLAIM_SECONDS, Limits, Report, run_program, shortened

DEATHS: Final = Limits(unclaimed_seconds=CLAIM_SECONDS, settled_seconds=600.0)
FAULTS: Final = Limits(unclaimed_seconds=CLAIM_SECONDS + 700.0, settled_seconds=2000.0)
EXPIRY: Final = Limits(
    unclaimed_seconds=CLAIM_SECONDS + 700.0, settled_seconds=2000.0 + JOB_SECONDS
)
PROGRAMS_A_TEST: Final = 25
EXPIRING_A_TEST: Final = 10
"""Fewer, since each is longer: what has had its time is waited for."""
PARTS: Final = range(scaled(1))
"""More tests instead of longer ones: each has to end within the suite's time limit for a test."""

FOUND: Final = (
    # The process that ran the job claimed it anew: its first attempt waited for ever.
    Program(
        seed=96968,
        rate=0.0,
        events=(
            (0.03, Create("slow_db", 2)),
            (1.0, Create("long_db", 4)),
            (1.0, Create("fast_db", 2)),
            (64.4, TurnClock(70.0)),
        ),
    ),
    # A message was acknowledged since the clock was turned back and the job was not due any more.
    Program(
        seed=1005,
        rate=0.0,
        events=(
            (0.2, KillWorker(1)),
            (3.0, Create("long_db", 1)),
            (0.03, Create("slow_db", 4)),
            (26.0, LoseConsumer(0)),
            (0.2, DrainWorker(0)),
            (0.2, Create("long_db", 5)),
            (64.00999999999999, StartMissing()),
            (0.03, TurnClock(-70.0)),
        ),
    ),
    # A put that its job had given up was carried out once the job's object had been deleted.
    Program(
        seed=0,
        rate=0.0,
        events=(
            (0.1, Fail("complete", Fate.LATE, skip=0, count=1)),
            (0.1, Create("fast_db", 1)),
            (12.0, StartMissing()),
        ),
    ),
)

# A failing program is shortened by dropping events, which keeps its seed: hypothesis would try
# thousands of others.
profile = hypothesis.settings(database=None, max_examples=PROGRAMS_A_TEST, phases=[Phase.generate])


@pytest.fixture(autouse=True)
def no_logs() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def check(program: Program, limits: Limits) -> Report:
    """Run it; told of a failure are the shortest program that still fails, and its last steps."""
    report = run_program(program, limits)
    if not report.violations:
        return report
    short = shortened(program, lambda tried: bool(run_program(tried, limits).violations))
    report = run_program(short, limits)
    raise AssertionError("\n".join([*report.violations, repr(short), *report.trace[-300:]]))


@pytest.mark.parametrize("part", PARTS)
def test_whatever_fails_every_job_ends_once_with_its_object_and_its_event(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(profile)
    @hypothesis.given(ALL_FAULTS)
    def hold(program: Program) -> None:
        check(program, FAULTS)

    hold()


@pytest.mark.parametrize("part", PARTS)
def test_what_has_had_its_time_goes_none_before_and_none_never(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(profile, max_examples=EXPIRING_A_TEST)
    @hypothesis.given(EXPIRING)
    def hold(program: Program) -> None:
        check(program, EXPIRY)

    hold()


@pytest.mark.parametrize("part", PARTS)
def test_after_deaths_alone_every_job_is_claimed_within_lease_plus_30_seconds(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(profile)
    @hypothesis.given(DEATHS_ALONE)
    def hold(program: Program) -> None:
        check(program, DEATHS)

    hold()


@pytest.mark.parametrize("part", PARTS)
def test_jobs_of_a_connection_that_is_down_wait_for_it_and_one_probes(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(profile)
    @hypothesis.given(REFUSED_LOGINS)
    def hold(program: Program) -> None:
        check(program, FAULTS)

    hold()


@pytest.mark.parametrize(
    ("later", "probes"),
    [
        # Nobody mends it: probed until it is back.
        ((), 2),
        # The changed password is tried without a probe, by the job that waited.
        (((5.0, Repair("fast_db")),), 0),
    ],
)
def test_a_job_waits_until_its_connection_is_back_or_was_changed(later: Timed, probes: int) -> None:
    refused = RefuseLogins("fast_db", 45.0, known_failures=5)
    events: Timed = ((0.0, refused), (0.2, Create("fast_db", 1)), *later, (50.0, StartMissing()))
    report = run_program(Program(seed=3, rate=0.0, events=events), FAULTS)
    assert report.violations == ()
    assert (report.jobs, report.probes) == (1, probes)
    assert report.parked >= 1


KEPT_BACK: Final = {
    # Three results that cannot be deleted stand before one that can.
    "results_that_cannot_be_deleted": (
        (0.2, Create("fast_db", 1)),
        (0.2, Create("fast_db", 2)),
        (0.2, Create("fast_db", 3)),
        (30.0, LockResults()),
        (1.0, Create("fast_db", 4)),
        (60.0, StartMissing()),
    ),
    "an_event_that_is_not_published": (
        (0.2, Create("long_db", 1)),
        (3.0, TakeAway(Part.BROKER, 1.5 * JOB_SECONDS)),
        (1.2 * JOB_SECONDS, StartMissing()),
    ),
    "objects_that_are_not_deleted": (
        (0.2, Create("long_db", 1)),
        (3.0, TakeAway(Part.OBJECTS, 1.5 * JOB_SECONDS)),
        (1.0, Cancel(0)),
        (1.2 * JOB_SECONDS, StartMissing()),
    ),
}


@pytest.mark.parametrize("what", KEPT_BACK)
def test_what_is_kept_back_goes_afterwards_and_keeps_no_other(what: str) -> None:
    report = check(Program(seed=5, rate=0.0, events=KEPT_BACK[what], expires=True), EXPIRY)
    assert report.jobs_gone == 1


@pytest.mark.parametrize("program", FOUND, ids=lambda program: str(program.seed))
def test_what_was_found_once_is_found_no_more(program: Program) -> None:
    check(program, FAULTS)


def test_a_failing_program_is_shown_as_source() -> None:
    program = Program(
        seed=1,
        rate=0.1,
        events=((0.5, Fail("ack", Fate.LATE, 1, 2)), (1.0, TakeAway(Part.OBJECTS, 2.0))),
    )
    assert eval(repr(program)) == program  # noqa: S307 - what its reader does


def test_a_seed_replays_step_by_step() -> None:
    program = Program(
        seed=7,
        rate=0.05,
        events=(
            (0.1, Create("slow_db", 1)),
            (0.1, Create("fast_db", 2)),
            (3.0, KillWorker(0)),
            (3.0, KillWorker(1)),
        ),
    )
    first, again = (run_program(program, FAULTS) for _ in range(2))
    other = run_program(replace(program, seed=8), FAULTS)
    assert first.trace == again.trace
    assert first.trace != other.trace
    assert first.jobs > 0
