"""What happens only on a loop, or after a failure: reading ahead into a spool, and cleaning up."""

from dataclasses import replace

import pytest

from fetcher_engine import (
    EncodedBatch,
    EngineError,
    ErrorCategory,
    ExecutionStatus,
    PlanStep,
)
from fetcher_engine.memory import MemoryConnectorFactory, MemorySource

from .faulty_ports import RECORD, TENANT, World
from .leaks import gives_nothing_away, tainted
from .loops import RealLoop, every_loop, real_loops, run
from .refusals import SENTINEL
from .secret_faults import FAULTS, Halt, observers_saw_nothing, of_secrets, outcome_of
from .secret_operations import PLAN

LOST = (ErrorCategory.UNAVAILABLE, "failed to spool extraction result")
ROW = b'{"z":"%b"}' % (SENTINEL.encode() * (1 << 15))
FIELDS = {"u": ("z",)}
BOTH = replace(
    PLAN,
    steps=(
        PlanStep(ordinal=0, config_name="c", fields=FIELDS),
        PlanStep(ordinal=1, config_name="d", fields=FIELDS),
    ),
)
DOCUMENT = b'{"c":{"u":[]},"d":{"u":[%b]}}' % b",".join([ROW] * 8)
KINDS = [*FAULTS, "engine"]


def fault_of(kind: str) -> BaseException:
    return tainted(FAULTS[kind]() if kind in FAULTS else of_secrets(ErrorCategory.CONFLICT))


def read_ahead(world: World, loop: RealLoop) -> bytes | EngineError:
    """The document of two sources, the first of which waits until the second is in the spool."""
    world.store.put(TENANT, replace(RECORD, config_name="d", id="id-2", type="D"))
    ahead = MemorySource(batches=lambda _: [EncodedBatch("u", ROW, 1)] * 8)
    world.registry.register("D", MemoryConnectorFactory(ahead))

    async def before_query() -> None:
        while not {"file.append", world.point} & world.reached:
            await loop.pause()

    world.source.before_query, world.source.batches = before_query, lambda _: ()
    received = bytearray()

    async def write(piece: bytes | memoryview) -> None:
        received.extend(piece)

    try:
        run(lambda: world.engine.stream_extraction(BOTH, write))
    except EngineError as error:
        return error
    return bytes(received)


@real_loops
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ["spool.open", "file.append", "file.read", "file.aclose"])
def test_spool_that_fails(loop: RealLoop, point: str, kind: str) -> None:
    world = World(point, error=fault_of(kind))
    outcome = read_ahead(world, loop)
    assert point in world.reached
    if point != "file.read":
        assert outcome == DOCUMENT
        return
    assert isinstance(outcome, EngineError)
    gives_nothing_away(outcome)
    observers_saw_nothing(world, outcome)
    assert (outcome.category, outcome.message) == LOST
    assert outcome.unwrap() is None


@real_loops
@pytest.mark.parametrize("answer", [None, SENTINEL, b"", b"x" * (1 << 20)])
def test_spool_that_gives_back_what_are_no_such_bytes(loop: RealLoop, answer: object) -> None:
    world = World("file.read")
    world.answer = answer
    outcome = read_ahead(world, loop)
    assert isinstance(outcome, EngineError)
    gives_nothing_away(outcome)
    assert (outcome.category, outcome.message) == LOST


@every_loop
@pytest.mark.parametrize("kind", KINDS)
def test_abort_that_fails_does_not_take_the_place_of_what_happened(kind: str) -> None:
    world = World("writer.abort", error=fault_of(kind))
    failure = OSError(SENTINEL)
    world.source.query_error = failure
    error = outcome_of(world, "store")
    assert "writer.abort" in world.reached
    assert isinstance(error, EngineError)
    gives_nothing_away(error)
    observers_saw_nothing(world, error)
    assert (error.category, error.message) == (
        ErrorCategory.UNAVAILABLE,
        "failed to query datasource",
    )


@every_loop
@pytest.mark.parametrize("kind", KINDS)
def test_clock_that_fails_hides_no_failure(kind: str) -> None:
    world = World(error=fault_of(kind))

    async def before_query() -> None:
        world.point = "host.now"
        raise OSError(SENTINEL)

    world.source.before_query = before_query
    error = outcome_of(world, "direct")
    assert isinstance(error, EngineError)
    gives_nothing_away(error)
    assert error.message == "failed to query datasource"
    last = world.states[-1]
    assert (last.status, last.completed_at) == (ExecutionStatus.FAILED, None)
    assert last.failure_message == error.message


@every_loop
def test_clock_that_fails_hides_no_cancellation() -> None:
    world = World(error=RuntimeError(SENTINEL))
    halt = Halt()

    async def before_query() -> None:
        world.point = "host.now"
        raise halt

    world.source.before_query = before_query
    assert outcome_of(world, "direct") is halt
    gives_nothing_away(halt)
    last = world.states[-1]
    assert (last.status, last.completed_at) == (ExecutionStatus.CANCELED, None)
