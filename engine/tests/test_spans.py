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

from .hosts import host_of
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


class BrokenSpan:
    """Fails where it is told to, and swallows whatever ends it."""

    def __init__(self, fault: str) -> None:
        self._fault = fault

    def start_span(self, operation: str) -> AbstractContextManager[object]:
        if self._fault == "start":
            raise leaky()
        return self

    def __enter__(self) -> object:
        if self._fault == "enter":
            raise leaky()
        return self

    def __exit__(self, *ending: object) -> bool:
        if self._fault == "exit":
            raise leaky()
        return True


@pytest.mark.parametrize("fault", ["start", "enter", "exit", "swallow"])
def test_span_that_fails_or_swallows_decides_nothing(fault: str) -> None:
    host = host_of({"a": {"t": [{"x": 1}]}}, observability=BrokenSpan(fault))
    plan = run(host.plan_all())
    assert run(host.engine.execute_extraction(plan)).document == b'{"a":{"t":[{"x":1}]}}'
    host.sources["a"].query_error = leaky()
    with refuses(UNAVAILABLE, "failed to query datasource"):
        run(host.engine.execute_extraction(plan))


def test_span_never_sees_a_foreign_exception() -> None:
    seen: list[object] = []

    class Watching:
        def start_span(self, operation: str) -> AbstractContextManager[object]:
            return self

        def __enter__(self) -> object:
            return self

        def __exit__(self, kind: object, error: object, trace: object) -> None:
            seen.append(error)

    class Failing:
        async def has_active_executions(self, tenant: object, config_name: str) -> bool:
            raise leaky()

    host = host_of({}, observability=Watching(), active_execution_checker=Failing())
    with pytest.raises(RuntimeError):
        run(host.engine.connections.check_active_executions(T1, "a"))
    assert [str(error) for error in seen] == ["engine: [internal] unexpected engine failure"]
