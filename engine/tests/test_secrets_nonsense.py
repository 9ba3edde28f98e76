"""A port that answers nonsense instead of raising: a failure with a fixed text, never a success."""

import pytest

from fetcher_engine import EngineError, ErrorCategory

from .faulty_ports import World
from .leaks import gives_nothing_away, shows_no_secret
from .loops import TrampolineLoop
from .refusals import SENTINEL
from .secret_faults import (
    CRASH,
    DISCOVER,
    PROTECT,
    QUERY,
    REGISTRY,
    SINK,
    Rule,
    observers_saw_nothing,
    outcome_of,
)
from .secret_operations import CACHED, DISCOVERIES, EXECUTIONS, SOURCES

pytestmark = pytest.mark.loops.with_args(TrampolineLoop)


class Nonsense:
    """Has none of the methods that a port asks for."""

    def __repr__(self) -> str:
        return SENTINEL


ANSWERS = {"none": None, "object": Nonsense(), "text": SENTINEL, "class": Nonsense}
UNKNOWN_TYPE = Rule("no connector registered for datasource type T", ErrorCategory.NOT_FOUND)
NONSENSE: list[tuple[str, Rule, tuple[str, ...], tuple[str, ...]]] = [
    ("protector.protect", PROTECT, ("create", "update", "update_by_id"), tuple(ANSWERS)),
    ("registry.connector", UNKNOWN_TYPE, SOURCES, ("none",)),
    ("registry.connector", REGISTRY, SOURCES, ("object", "text", "class")),
    ("factory.build", REGISTRY, SOURCES, tuple(ANSWERS)),
    ("connector.discover_schema", DISCOVER, DISCOVERIES, tuple(ANSWERS)),
    ("connector.open_stream", QUERY, EXECUTIONS, tuple(ANSWERS)),
    ("stream.next_batch", CRASH, EXECUTIONS, ("object", "text", "class")),
    ("stream.notes", CRASH, EXECUTIONS, ("object", "text", "class")),
    ("sink.open_result_stream", SINK, ("store",), tuple(ANSWERS)),
    ("writer.write", SINK, ("store",), tuple(ANSWERS)),
    ("writer.close", SINK, ("store",), tuple(ANSWERS)),
]
CELLS = [
    pytest.param(point, rule, operation, ANSWERS[answer], id=f"{point}-{operation}-{answer}")
    for point, rule, operations, answers in NONSENSE
    for operation in operations
    for answer in answers
]


@pytest.mark.parametrize(("point", "rule", "operation", "answer"), CELLS)
def test_nonsense_is_a_failure_with_a_fixed_text(
    point: str, rule: Rule, operation: str, answer: object
) -> None:
    world = World(point)
    world.answer = answer
    error = outcome_of(world, operation)
    assert point in world.reached
    assert isinstance(error, EngineError)
    gives_nothing_away(error)
    observers_saw_nothing(world, error)
    assert (error.category, error.message) == (rule.category, rule.text)
    shows_no_secret(error.unwrap())
    assert world.sink.stored_count == 0


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("operation", CACHED)
def test_cached_nonsense_is_a_miss(operation: str, answer: object) -> None:
    world = World("cache.get_schema")
    world.answer = answer
    assert outcome_of(world, operation) is None
    assert "connector.discover_schema" in world.reached


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("operation", EXECUTIONS)
def test_encoding_that_answers_nonsense_is_passed_over(operation: str, answer: object) -> None:
    world = World("row_encoding.encode")
    world.answer = answer
    assert outcome_of(world, operation) is None
    assert "row_encoding.encode" in world.reached
