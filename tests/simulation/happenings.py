"""What may happen to the processes, the parts and the jobs of a run."""

from dataclasses import dataclass

from tests.simulation.faults import Fate, Part
from tests.simulation.world import World


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
        world.stall(self.number, self.seconds)


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


@dataclass(frozen=True)
class RefuseLogins:
    """A database refuses our password, and so many jobs of others have met that already."""

    source: str
    seconds: float
    known_failures: int

    def happen(self, world: World) -> None:
        world.refuse_logins(self.source, seconds=self.seconds, known_failures=self.known_failures)


@dataclass(frozen=True)
class Repair:
    """Somebody sets the right password."""

    source: str

    def happen(self, world: World) -> None:
        world.manager.repair(world.connection(self.source).id)


@dataclass(frozen=True)
class DeleteResult:
    """Somebody asks to delete the result of one of the jobs that there are."""

    place: int

    def happen(self, world: World) -> None:
        entries = world.entries
        if entries:
            world.delete_result(entries[self.place % len(entries)].job.id)


@dataclass(frozen=True)
class LockResults:
    """The results that there are cannot be deleted any more, by anybody."""

    def happen(self, world: World) -> None:
        world.lock_results()


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
    | RefuseLogins
    | Repair
    | DeleteResult
    | LockResults
)
