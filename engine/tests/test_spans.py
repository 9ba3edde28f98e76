"""One span an operation (spec 15, 21.3)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from fetcher_engine import Engine, EngineError
from fetcher_engine.memory import (
    MemoryConnectionIdStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

from .keepers import OPERATIONS, RECORD, REQUEST, T1, UNAVAILABLE, Keeper, a_connection
from .loops import concurrency_of_the_round, every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop


class Spans:
    """Records each span when it ends, with the category it ended with."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    def start_span(self, operation: str) -> AbstractContextManager[object]:
        @contextmanager
        def span() -> Iterator[None]:
            category = ""
            try:
                yield
            except EngineError as error:
                category = error.category
                raise
            finally:
                self.ended.append((operation, str(category)))

        return span()


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("create", "engine.connection.create"),
        ("get", "engine.connection.get"),
        ("list", "engine.connection.list"),
        ("update", "engine.connection.update"),
        ("delete", "engine.connection.delete"),
        ("get_by_id", "engine.connection.get_by_id"),
        ("list_paged", "engine.connection.list_paged"),
        ("update_by_id", "engine.connection.update_by_id"),
        ("delete_by_id", "engine.connection.delete_by_id"),
        ("test", "engine.connection.test"),
        ("discover", "engine.schema.discover"),
        ("discover_fresh", "engine.schema.discover_fresh"),
        ("validate", "engine.schema.validate"),
        ("plan", "engine.extraction.plan"),
    ],
)
def test_every_operation_has_one_span_that_ends_with_the_failures_category(
    operation: str, name: str
) -> None:
    spans = Spans()
    keeper = Keeper()
    keeper.engine = Engine(
        MemoryRegistry(),
        connection_store=keeper.store,
        observability=spans,
        concurrency=concurrency_of_the_round(),
    )
    keeper.by_name = keeper.engine.connections
    keeper.by_id = keeper.engine.connections_by_id
    keeper.store.error = leaky()
    with refuses(UNAVAILABLE):
        run(OPERATIONS[operation](keeper, T1))
    assert spans.ended == [(name, "unavailable")]


def test_validation_within_planning_has_a_span_of_its_own() -> None:
    spans = Spans()
    source = MemorySource.of_rows({"t": [{"f": 1}]})
    store = MemoryConnectionIdStore()
    store.put(T1, RECORD)
    engine = Engine(
        MemoryRegistry({"T": MemoryConnectorFactory(source)}),
        connection_store=store,
        observability=spans,
        concurrency=concurrency_of_the_round(),
    )
    plan = run(engine.plan_extraction(T1, REQUEST))
    run(engine.execute_extraction(plan))
    assert spans.ended == [
        ("engine.schema.validate", ""),
        ("engine.extraction.plan", ""),
        ("engine.extraction.execute", ""),
    ]


def test_span_of_a_success_ends_without_a_category() -> None:
    spans = Spans()
    engine = Engine(
        MemoryRegistry(),
        connection_store=MemoryConnectionIdStore(),
        observability=spans,
        concurrency=concurrency_of_the_round(),
    )
    run(engine.connections.create(T1, a_connection()))
    run(engine.connections.authorize_access(T1))
    run(engine.connections.check_active_executions(T1, "c"))
    assert spans.ended == [
        ("engine.connection.create", ""),
        ("engine.connection.authorize_access", ""),
        ("engine.connection.check_active_executions", ""),
    ]
