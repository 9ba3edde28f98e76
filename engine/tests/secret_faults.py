"""What may go wrong at each point of a host's ports, and what that must end in (spec 3.3, 3.4)."""

from collections.abc import Callable
from typing import NamedTuple

from fetcher_engine import (
    DeadlineExceeded,
    EngineError,
    ErrorCategory,
    ExecutionStatus,
    SourceFailure,
    Stage,
    ValidationFailure,
)
from fetcher_engine.schema import FailureType

from .faulty_ports import World
from .leaks import gives_nothing_away, shows_no_secret
from .loops import run
from .refusals import SENTINEL
from .secret_operations import CACHED, DISCOVERIES, EXECUTIONS, OPERATIONS, SOURCES

UNAVAILABLE, CONNECT = ErrorCategory.UNAVAILABLE, ErrorCategory.CONNECT
TIMED_OUT = ErrorCategory.TIMEOUT, "execution exceeded its deadline"
OWN_TEXT = "the host's own words"


class Rule(NamedTuple):
    """What a fault at a point ends in; without a text the operation succeeds in spite of it."""

    text: str = ""
    category: ErrorCategory = UNAVAILABLE
    passing: frozenset[ErrorCategory] = frozenset()
    """EngineErrors that leave as they are, but for what led to them."""
    keeps_cause: bool = False
    """Whether the exception itself stays behind ``unwrap()``."""
    tells_deadline: bool = False
    """Whether a DeadlineExceeded counts as the Engine's own."""
    is_source: bool = False
    """Whether safe words and a ``connect`` with its cause cross."""
    passes_all: bool = False


ALL = frozenset(ErrorCategory)
IGNORED = Rule()
WRITES = ("create", "update", "delete", "update_by_id", "delete_by_id")
STORE = Rule("connection store unavailable", passing=ALL, keeps_cause=True, tells_deadline=True)
PROTECT = Rule("failed to protect connection credential")
CHECK = Rule("failed to check for active executions")
CHECK_ALONE = Rule("passes", passing=ALL, tells_deadline=True, passes_all=True)
REGISTRY = Rule("failed to build connector for connection")
BUILD = REGISTRY._replace(passing=frozenset({ErrorCategory.VALIDATION, ErrorCategory.NOT_FOUND}))
TEST = Rule("failed to connect to datasource", CONNECT, tells_deadline=True, is_source=True)
DISCOVER = Rule("failed to discover datasource schema", tells_deadline=True, is_source=True)
QUERY = Rule("failed to query datasource", tells_deadline=True, is_source=True)
SINK = Rule("failed to persist extraction result", keeps_cause=True, tells_deadline=True)
WRITE = SINK._replace(passing=ALL)
CRASH = Rule("extraction step failed unexpectedly", ErrorCategory.INTERNAL)
UNEXPECTED = Rule("unexpected engine failure", ErrorCategory.INTERNAL)

POINTS: list[tuple[str, Rule, tuple[str, ...]]] = [
    ("store.find_connection", STORE, ("create", "get", "update", "delete", *SOURCES)),
    ("store.create", STORE, ("create",)),
    ("store.list", STORE, ("list",)),
    ("store.update", STORE, ("update",)),
    ("store.delete", STORE, ("delete",)),
    ("store.find_by_id", STORE, ("get_by_id", "update_by_id", "delete_by_id")),
    ("store.list_paged", STORE, ("list_paged",)),
    ("store.update_by_id", STORE, ("update_by_id",)),
    ("store.delete_by_id", STORE, ("delete_by_id",)),
    ("protector.protect", PROTECT, ("create", "update", "update_by_id")),
    ("checker.has_active_executions", CHECK, ("update", "delete")),
    ("checker.has_active_executions", CHECK_ALONE, ("check",)),
    ("cache.get_schema", IGNORED, CACHED),
    ("cache.put_schema", IGNORED, CACHED),
    ("cache.invalidate_schema", IGNORED, WRITES),
    ("registry.connector", REGISTRY, SOURCES),
    ("factory.requires_fields", REGISTRY, ("plan",)),
    ("factory.build", BUILD, SOURCES),
    ("connector.test_connection", TEST, ("test", *EXECUTIONS)),
    ("connector.discover_schema", DISCOVER, DISCOVERIES),
    ("connector.open_stream", QUERY, EXECUTIONS),
    ("connector.close", IGNORED, SOURCES),
    ("stream.next_batch", QUERY, EXECUTIONS),
    ("stream.notes", CRASH, EXECUTIONS),
    ("stream.aclose", IGNORED, EXECUTIONS),
    ("row_encoding.encode", IGNORED, EXECUTIONS),
    ("executions.save_execution", IGNORED, EXECUTIONS),
    ("sink.open_result_stream", SINK, ("store",)),
    ("writer.write", SINK, ("store",)),
    ("writer.close", SINK, ("store",)),
    ("host.write", WRITE, ("stream",)),
    ("host.progress", CRASH, EXECUTIONS),
    ("host.is_cancelled", UNEXPECTED, ("plan", *EXECUTIONS)),
    ("host.now", UNEXPECTED, EXECUTIONS),
    ("observability.start_span", IGNORED, tuple(OPERATIONS)),
    ("span.enter", IGNORED, tuple(OPERATIONS)),
    ("span.exit", IGNORED, tuple(OPERATIONS)),
]
ON_LOOPS_ALONE = {"spool.open", "file.append", "file.read", "file.aclose"}
"""Without a loop nothing is read ahead: test_secrets_spool.py."""
ON_FAILURE_ALONE = {"writer.abort"}


class Halt(BaseException):
    """Like a loop's own cancellation: nothing in the Engine knows it."""


class Mute(Exception):
    """Can be told apart by nothing, and asked for nothing."""

    def __str__(self) -> str:
        raise RuntimeError(SENTINEL)

    __repr__ = __str__


class Bare(SourceFailure):
    """A connector's own, which forgot its parent's constructor."""

    def __init__(self) -> None:
        Exception.__init__(self, SENTINEL)


def of_objects() -> SourceFailure:
    """Words that are none."""
    failure = SourceFailure(Stage.QUERY, "")
    vars(failure).update(stage=Mute(), reason=Mute(), table=[], column=Mute())
    return failure


def of_secrets(category: ErrorCategory) -> EngineError:
    """An EngineError of a port that is not to be trusted with one."""
    failures = (ValidationFailure(FailureType.TABLE_NOT_FOUND, SENTINEL, SENTINEL),)
    return EngineError(
        category,
        SENTINEL,
        OSError(SENTINEL),
        source=SENTINEL,
        reason=SENTINEL,
        table=SENTINEL,
        column=SENTINEL,
        failures=failures,
    )


def of_the_host(category: ErrorCategory) -> EngineError:
    """An EngineError whose own words are the host's to answer for, but not what led to it."""
    return EngineError(category, OWN_TEXT, OSError(SENTINEL))


FAULTS: dict[str, Callable[[], Exception]] = {
    "plain": lambda: RuntimeError(SENTINEL),
    "os": lambda: OSError(13, SENTINEL, SENTINEL),
    "mute": lambda: Mute(SENTINEL),
    "unicode": lambda: UnicodeDecodeError("utf-8", SENTINEL.encode(), 0, 1, SENTINEL),
    "group": lambda: ExceptionGroup(SENTINEL, [RuntimeError(SENTINEL), KeyError(SENTINEL)]),
    "words": lambda: SourceFailure(
        SENTINEL,  # type: ignore[arg-type]  # a connector's mistake
        SENTINEL,
        table=SENTINEL,
        column=SENTINEL,
    ),
    "objects": of_objects,
    "bare": Bare,
    "deadline": lambda: DeadlineExceeded(SENTINEL),
}


def outcome_of(world: World, operation: str) -> BaseException | None:
    """How it ended; a success is looked at here."""
    try:
        result = run(lambda: OPERATIONS[operation](world))
    except BaseException as ending:  # noqa: BLE001 - judged by the caller
        return ending
    shows_no_secret(result if not isinstance(result, tuple) else result[0])
    return None


def observers_saw_nothing(world: World, raised: BaseException | None) -> None:
    """Spans end with what was raised, states with its text, and every connector is closed."""
    for ending in world.endings:
        assert ending is None or ending is raised
        if ending is not None:
            gives_nothing_away(ending)
    for state in world.states:
        shows_no_secret(state)
    if world.states and world.point != "host.now":
        assert world.states[0].status is ExecutionStatus.RUNNING
    if isinstance(raised, EngineError) and world.states:
        assert world.states[-1].failure_message == raised.message
    assert all(
        connector.close_count == 1 or world.point == "connector.close"
        for connector in world.connectors
    )


def judge(world: World, rule: Rule, operation: str) -> EngineError | None:
    """Run, and assert all that holds for every fault; the error for what is special."""
    fault = world.error
    raised = outcome_of(world, operation)
    assert world.point in world.reached
    if not rule.text:
        assert raised is None, raised
        observers_saw_nothing(world, None)
        return None
    assert isinstance(raised, EngineError), raised
    gives_nothing_away(raised)
    observers_saw_nothing(world, raised)
    if isinstance(fault, DeadlineExceeded) and rule.tells_deadline:
        assert (raised.category, raised.message) == TIMED_OUT
        assert raised.unwrap() is None
        return None
    return raised
