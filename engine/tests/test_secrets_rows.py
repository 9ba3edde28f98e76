"""What rows, names and batches hold stays out of the error that they cause."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from fetcher_engine import (
    Batch,
    EncodedBatch,
    EngineError,
    ErrorCategory,
    RowBatch,
    StreamRequest,
)

from .faulty_ports import World
from .leaks import gives_nothing_away, tainted
from .loops import every_loop
from .refusals import SENTINEL
from .secret_faults import FAULTS, observers_saw_nothing, of_secrets, outcome_of
from .secret_operations import EXECUTIONS

pytestmark = every_loop


class Opaque:
    def __repr__(self) -> str:
        return SENTINEL


class Raising(Mapping[str, object]):
    """A row of a driver that reads when it is looked at."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getitem__(self, key: str) -> object:
        raise self._error

    def __iter__(self) -> Iterator[str]:
        raise self._error

    def __len__(self) -> int:
        return 1


class RaisingRows(Sequence[Mapping[str, object]]):
    """Rows of a driver that fetches them when they are looked at."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getitem__(self, index: Any) -> Any:
        raise self._error

    def __len__(self) -> int:
        return 1


def nested(depth: int) -> object:
    value: object = SENTINEL
    for _ in range(depth):
        value = [value]
    return value


def error_of(operation: str, *batches: Batch) -> EngineError:
    def made(request: StreamRequest) -> Sequence[Batch]:
        return batches

    world = World()
    world.source.batches = made
    error = outcome_of(world, operation)
    assert isinstance(error, EngineError), error
    gives_nothing_away(error)
    observers_saw_nothing(world, error)
    assert error.category is ErrorCategory.INTERNAL
    assert error.source == "c"
    assert error.unwrap() is None
    assert world.sink.stored_count == 0
    return error


NOT_SERIALIZED, CRASHED = (
    "failed to serialize extraction result",
    "extraction step failed unexpectedly",
)
NOT_ENCODABLE, INVALID_TEXT = "not_encodable", "invalid_text"
ROWS: dict[str, tuple[dict[Any, object], tuple[str, str | None]]] = {
    "object": ({"x": Opaque(), "y": 1}, (NOT_ENCODABLE, "x")),
    "text": ({"x": 1, "y": f"{SENTINEL}\ud800"}, (INVALID_TEXT, "y")),
    "depth": ({"x": nested(500)}, (NOT_ENCODABLE, "x")),
    "nested key": ({"x": {SENTINEL: Opaque()}}, (NOT_ENCODABLE, "x")),
    "column nobody asked for": ({SENTINEL: Opaque()}, (NOT_ENCODABLE, None)),
    "its text": ({SENTINEL: f"{SENTINEL}\ud800"}, (INVALID_TEXT, None)),
    "name that is no Unicode": ({f"{SENTINEL}\ud800": 1}, (INVALID_TEXT, None)),
    "name that is no text": ({Opaque(): 1}, (NOT_ENCODABLE, None)),
}


@pytest.mark.parametrize("operation", EXECUTIONS)
@pytest.mark.parametrize(("row", "words"), ROWS.values(), ids=ROWS)
def test_row_that_cannot_be_written(
    operation: str, row: dict[str, object], words: tuple[str, str | None]
) -> None:
    error = error_of(operation, RowBatch("t", [{"x": SENTINEL, "y": 1}, row]))
    assert error.message == NOT_SERIALIZED
    assert (error.table, error.reason, error.column) == ("t", *words)


LAZY: dict[str, Callable[[], Exception]] = {
    **FAULTS,
    "engine": lambda: of_secrets(ErrorCategory.CONNECT),
}
del LAZY["deadline"]


@pytest.mark.parametrize("operation", EXECUTIONS)
@pytest.mark.parametrize("kind", LAZY)
def test_row_that_raises_when_it_is_looked_at(operation: str, kind: str) -> None:
    fault = LAZY[kind]()
    tainted(fault)
    error = error_of(operation, RowBatch("t", [Raising(fault)]))
    assert (error.message, error.table, error.column) == (NOT_SERIALIZED, "t", None)


@pytest.mark.parametrize("operation", EXECUTIONS)
@pytest.mark.parametrize("kind", LAZY)
def test_rows_that_raise_when_they_are_looked_at(operation: str, kind: str) -> None:
    fault = LAZY[kind]()
    tainted(fault)
    error = error_of(operation, RowBatch("t", RaisingRows(fault)))
    assert error.message == (NOT_SERIALIZED if kind == "engine" else CRASHED)
    assert error.column is None


@pytest.mark.parametrize("operation", EXECUTIONS)
@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (RowBatch(SENTINEL, [{"x": 1}]), ("table_out_of_order", None)),
        (RowBatch(SENTINEL, [{"x": Opaque()}]), ("table_out_of_order", None)),
        (EncodedBatch(SENTINEL, b'{"x":1}', 1), ("table_out_of_order", None)),
        (EncodedBatch("t", b"", 3), ("malformed_batch", "t")),
        (RowBatch("t", [SENTINEL]), (NOT_ENCODABLE, "t")),  # type: ignore[list-item]  # a mistake
    ],
    ids=["table", "table and row", "encoded table", "count", "row that is a text"],
)
def test_batch_that_is_none(
    operation: str, batch: Batch, words: tuple[str | None, str | None]
) -> None:
    error = error_of(operation, batch)
    assert (error.reason, error.table, error.column) == (*words, None)


def test_encoded_rows_that_are_not_what_they_say() -> None:
    data = b'{"x":"%b"}' % SENTINEL.encode()
    error = error_of("store", EncodedBatch("t", data, 2))
    assert (error.message, error.reason, error.table) == (CRASHED, "malformed_batch", "t")
