"""How the time of an attempt is divided among its stages."""

import pytest

from fetcher.domain.job_stages import JobStage, StageClock


class Told:
    def __init__(self) -> None:
        self.seconds: dict[JobStage, float] = {}

    def stage_ended(self, stage: JobStage, seconds: float) -> None:
        assert stage not in self.seconds
        self.seconds[stage] = seconds

    def extracted(self, rows: int, size_bytes: int) -> None:
        raise AssertionError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pieces_add_up_and_what_lies_within_another_does_not_count_for_it() -> None:
    clock, told = Clock(), Told()
    stages = StageClock(clock)
    with stages.during(JobStage.CONNECT):
        clock.now += 1
    with stages.during(JobStage.READ):
        for _ in range(3):
            clock.now += 10
            with stages.during(JobStage.STORE):
                clock.now += 2
    with stages.during(JobStage.STORE):
        clock.now += 0.5
    stages.tell(told)
    assert told.seconds == {JobStage.CONNECT: 1, JobStage.READ: 30, JobStage.STORE: 6.5}


def test_a_stage_that_fails_is_told_as_far_as_it_came() -> None:
    clock, told = Clock(), Told()
    stages = StageClock(clock)

    def fail() -> None:
        with stages.during(JobStage.READ):
            clock.now += 4
            with stages.during(JobStage.STORE):
                clock.now += 3
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    stages.tell(told)
    assert told.seconds == {JobStage.READ: 4, JobStage.STORE: 3}
