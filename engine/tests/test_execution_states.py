"""States of an execution (spec 21.11, 10.6)."""

from fetcher_engine import Engine, TenantContext
from fetcher_engine.memory import RecordingExecutionStore

from .hosts import TENANT, direct_of, host_of
from .loops import concurrency_of_the_round, every_loop
from .plans import COMPLETED, RUNNING, TWO, TWO_DOCUMENT, execute
from .refusals import leaky

pytestmark = every_loop


def test_states_of_a_success() -> None:
    host = host_of(TWO)
    execute(host)
    assert host.executions.statuses == [RUNNING, COMPLETED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert state.started_at == state.completed_at == host.clock.now()


def test_execution_without_an_id_writes_no_state() -> None:
    host = host_of(TWO)
    execute(host, request_id="")
    assert host.executions.statuses == []


def test_engine_without_an_execution_store_works() -> None:
    host = host_of(TWO)
    host.engine = Engine(
        host.registry,
        connection_store=host.store,
        concurrency=concurrency_of_the_round(),
        now=host.clock.now,
    )
    assert direct_of(execute(host)).data == TWO_DOCUMENT
    assert host.executions.statuses == []


def test_execution_store_that_fails_changes_nothing() -> None:
    host = host_of(TWO)
    host.executions.save_error = leaky()
    assert direct_of(execute(host)).data == TWO_DOCUMENT
    assert host.executions.statuses == [RUNNING, COMPLETED]


def test_state_of_a_tenant_is_kept_apart() -> None:
    store = RecordingExecutionStore()
    host = host_of(TWO)
    execute(host)
    assert host.executions.find(TenantContext("other"), "j1") is None
    assert store.find(TENANT, "j1") is None
