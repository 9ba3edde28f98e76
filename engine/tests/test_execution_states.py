"""States of an execution (spec 21.11, 10.6)."""

from fetcher_engine import Engine, ErrorCategory, TenantContext

from .hosts import TENANT, direct_of, host_of
from .loops import concurrency_of_the_round, every_loop
from .plans import COMPLETED, FAILED, RUNNING, TWO, TWO_DOCUMENT, execute
from .refusals import leaky, refuses

pytestmark = every_loop


def test_states_of_a_success() -> None:
    host = host_of(TWO)
    started_at = host.clock.now()

    async def ten_seconds_pass() -> None:
        host.clock.advance(10)

    host.sources["b"].before_batch = ten_seconds_pass
    execute(host)
    assert host.executions.statuses == [RUNNING, COMPLETED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert state.started_at == started_at
    assert state.completed_at == host.clock.now() != started_at


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


def test_states_of_tenants_are_kept_apart() -> None:
    host, other = host_of(TWO), TenantContext("other")
    for name in TWO:
        host.add(name, other)
    execute(host)
    host.sources["b"].query_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE):
        execute(host, tenant_id="other")
    found = [host.executions.find(tenant, "j1") for tenant in (TENANT, other)]
    assert [state and state.status for state in found] == [COMPLETED, FAILED]
