"""What happens in one run: events on a time line, drawn by hypothesis."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.simulation.faults import Fate, Part
from tests.simulation.sources import SOURCES
from tests.simulation.world import WORKERS, World

MOST_REQUESTS = 6


@dataclass(frozen=True)
class Create:
    """Ask for a job. The same number again is the same request."""

    source: str
    number: int

    def happen(self, world: World) -> None:
        world.manager.create(self.source, self.number)


@dataclass(frozen=True)
class Cancel:
    """Ask one of the jobs that there are to stop."""

    place: int

    def happen(self, world: World) -> None:
        entries = world.entries
        if entries:
            world.manager.cancel(entries[self.place % len(entries)].job.id)


@dataclass(frozen=True)
class KillWorker:
    number: int

    def happen(self, world: World) -> None:
        world.workers[self.number].kill()


@dataclass(frozen=True)
class KillManager:
    def happen(self, world: World) -> None:
        world.manager.kill()


@dataclass(frozen=True)
class DrainWorker:
    """SIGTERM."""

    number: int

    def happen(self, world: World) -> None:
        world.workers[self.number].lifecycle.drain()


@dataclass(frozen=True)
class StartMissing:
    """Whoever has ended is started again."""

    def happen(self, world: World) -> None:
        world.start_missing()


@dataclass(frozen=True)
class TurnClock:
    """The record store's wall clock jumps."""

    seconds: float

    def happen(self, world: World) -> None:
        world.turn_clock(self.seconds)


@dataclass(frozen=True)
class Fail:
    """After some that are well, the next operations of one name all meet this fate."""

    operation: str
    fate: Fate
    skip: int
    count: int

    def happen(self, world: World) -> None:
        world.faults.order(self.operation, self.fate, skip=self.skip, count=self.count)


@dataclass(frozen=True)
class TakeAway:
    """A part is away for everybody."""

    part: Part
    seconds: float

    def happen(self, world: World) -> None:
        world.faults.take_away(self.part, self.seconds)
        if self.part is Part.BROKER:
            for consumer in list(world.broker.consumers):
                world.broker.lose(consumer)


@dataclass(frozen=True)
class Stall:
    """A worker is cut off: what it asks takes effect, and is answered, only later."""

    number: int
    seconds: float

    def happen(self, world: World) -> None:
        world.workers[self.number].stall(self.seconds)


@dataclass(frozen=True)
class LoseConsumer:
    number: int

    def happen(self, world: World) -> None:
        world.broker.lose_all_of(world.workers[self.number].link)


@dataclass(frozen=True)
class ReturnPublishes:
    """The next messages find no queue."""

    count: int

    def happen(self, world: World) -> None:
        world.broker.returns += self.count


@dataclass(frozen=True)
class PurgeQueue:
    """An operator empties the work queue."""

    def happen(self, world: World) -> None:
        world.broker.ready.clear()


Event = (
    Create
    | Cancel
    | KillWorker
    | KillManager
    | DrainWorker
    | StartMissing
    | TurnClock
    | Fail
    | TakeAway
    | Stall
    | LoseConsumer
    | ReturnPublishes
    | PurgeQueue
)


Timed = tuple[tuple[float, Event], ...]
"""Each event, and how many seconds it comes after the one before."""


@dataclass(frozen=True)
class Program:
    """``seed`` decides all that chance decides: delays, random faults, the order of tasks."""

    seed: int
    rate: float
    events: Timed


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
)
"""Each step of a job's way. ``requeue`` is a delivery's and a record's."""

_workers = st.integers(0, WORKERS - 1)
_requests = st.builds(Create, st.sampled_from(SOURCES), st.integers(0, MOST_REQUESTS - 1))
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
)


def _program(
    events: st.SearchStrategy[Event], rates: Sequence[float]
) -> st.SearchStrategy[Program]:
    """Some requests come first, but faults may be laid for them before."""

    def timed(what: st.SearchStrategy[Event], least: int, most: int) -> st.SearchStrategy[Timed]:
        return st.lists(st.tuples(_gaps, what), min_size=least, max_size=most).map(tuple)

    laid, asked = timed(events, 0, 5), timed(_requests, 1, 4)
    later = timed(st.one_of(events, events, _requests), 5, 25)
    everything = st.tuples(laid, asked, later).map(lambda parts: (*parts[0], *parts[1], *parts[2]))
    return st.builds(Program, _seeds, st.sampled_from(rates), everything)


ALL_FAULTS = _program(_everything, (0.0, 0.02, 0.1))
DEATHS_ALONE = _program(_deaths, (0.0,))
