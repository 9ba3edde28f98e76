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
from tests.simulation.programs import (
    ALL_FAULTS,
    DEATHS_ALONE,
    Create,
    DrainWorker,
    KillWorker,
    LoseConsumer,
    Program,
    StartMissing,
    TurnClock,
)
from tests.simulation.running import CLAIM_SECONDS, Limits, run_program, shortened

DEATHS: Final = Limits(unclaimed_seconds=CLAIM_SECONDS, settled_seconds=600.0)
FAULTS: Final = Limits(unclaimed_seconds=CLAIM_SECONDS + 700.0, settled_seconds=2000.0)
PROGRAMS_A_TEST: Final = 25
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
)

# A failing program is shortened by dropping events, which keeps its seed: hypothesis would try
# thousands of others.
profile = hypothesis.settings(database=None, max_examples=PROGRAMS_A_TEST, phases=[Phase.generate])


@pytest.fixture(autouse=True)
def no_logs() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def check(program: Program, limits: Limits) -> None:
    """Run it; told of a failure are the shortest program that still fails, and its last steps."""
    if not run_program(program, limits).violations:
        return
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
def test_after_deaths_alone_every_job_is_claimed_within_lease_plus_30_seconds(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(profile)
    @hypothesis.given(DEATHS_ALONE)
    def hold(program: Program) -> None:
        check(program, DEATHS)

    hold()


@pytest.mark.parametrize("program", FOUND, ids=lambda program: str(program.seed))
def test_what_was_found_once_is_found_no_more(program: Program) -> None:
    check(program, FAULTS)


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
