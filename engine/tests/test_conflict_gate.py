"""What is in use does not change (spec 21.4)."""

import pytest

from fetcher_engine import ConnectionDescriptor, ConnectionPatch, ErrorCategory, TenantContext

from .keepers import CONFLICT, NOT_FOUND, T1, UNAVAILABLE, Checker, Keeper, a_connection
from .loops import every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop


def with_checker(answer: bool | Exception) -> tuple[Keeper, Checker, ConnectionDescriptor]:
    checker = Checker(answer)
    keeper = Keeper(checker=checker)
    return keeper, checker, run(keeper.by_name.create(T1, a_connection()))


def test_without_a_checker_nothing_is_in_use() -> None:
    keeper = Keeper()
    run(keeper.by_name.create(T1, a_connection()))
    run(keeper.by_name.check_active_executions(T1, "c"))
    assert run(keeper.by_name.update(T1, "c", ConnectionPatch(port=2))).port == 2
    run(keeper.by_name.delete(T1, "c"))
    assert run(keeper.by_name.list(T1)) == ()


def test_connection_in_use_is_neither_changed_nor_deleted() -> None:
    keeper, checker, old = with_checker(True)
    for call in (
        keeper.by_name.update(T1, "c", ConnectionPatch(port=2)),
        keeper.by_name.delete(T1, "c"),
        keeper.by_name.check_active_executions(T1, "c"),
    ):
        with refuses(CONFLICT, "connection has active executions"):
            run(call)
    assert run(keeper.by_name.get(T1, "c")) == old
    assert checker.asked == [("t1", "c")] * 3


def test_idle_connection_is_changed_and_deleted() -> None:
    keeper, _checker, _old = with_checker(False)
    run(keeper.by_name.check_active_executions(T1, "c"))
    assert run(keeper.by_name.update(T1, "c", ConnectionPatch(port=2))).port == 2
    run(keeper.by_name.delete(T1, "c"))
    assert run(keeper.by_name.list(T1)) == ()


def test_checker_that_fails_stops_the_write_without_a_trace() -> None:
    keeper, _checker, old = with_checker(leaky())
    for call in (
        keeper.by_name.update(T1, "c", ConnectionPatch(port=2)),
        keeper.by_name.delete(T1, "c"),
    ):
        with refuses(UNAVAILABLE, "failed to check for active executions"):
            run(call)
    assert run(keeper.by_name.get(T1, "c")) == old


def test_checker_that_fails_in_the_gate_alone_shows_its_own_exception() -> None:
    keeper, checker, _old = with_checker(leaky(OSError))
    with pytest.raises(OSError) as caught:
        run(keeper.by_name.check_active_executions(T1, "c"))
    assert caught.value is checker.answer


def test_checker_is_not_asked_about_a_connection_that_is_missing() -> None:
    keeper, checker, _old = with_checker(True)
    for call in (
        keeper.by_name.update(T1, "x", ConnectionPatch()),
        keeper.by_name.delete(T1, "x"),
    ):
        with refuses(NOT_FOUND):
            run(call)
    assert checker.asked == []


@pytest.mark.parametrize("tenant_id", ["", "bad id"])
def test_gate_and_access_check_judge_the_tenant(tenant_id: str) -> None:
    keeper, checker, _old = with_checker(True)
    for call in (
        keeper.by_name.check_active_executions(TenantContext(tenant_id), "c"),
        keeper.by_name.authorize_access(TenantContext(tenant_id)),
    ):
        with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
            run(call)
    assert checker.asked == []
