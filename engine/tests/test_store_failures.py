"""What every operation makes of a store that fails, and of a tenant that is none (spec 21.3)."""

import pytest

from fetcher_engine import EngineError, ErrorCategory, TenantContext

from .keepers import OPERATIONS, T1, UNAVAILABLE, Call, Keeper
from .loops import every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_exception_of_a_store_leaves_as_unavailable_with_the_original_to_unwrap(
    operation: Call,
) -> None:
    keeper = Keeper()
    keeper.store.error = leaky(OSError)
    with refuses(UNAVAILABLE, "connection store unavailable") as caught:
        run(operation(keeper, T1))
    assert caught.value.unwrap() is keeper.store.error


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_engine_error_of_a_store_passes(operation: Call) -> None:
    keeper = Keeper()
    keeper.store.error = EngineError(ErrorCategory.FORBIDDEN, "not yours")
    with refuses(ErrorCategory.FORBIDDEN) as caught:
        run(operation(keeper, T1))
    assert caught.value is keeper.store.error


@pytest.mark.parametrize("tenant_id", ["", "bad id"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_malformed_tenant_reaches_no_store(operation: Call, tenant_id: str) -> None:
    keeper = Keeper()
    with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
        run(operation(keeper, TenantContext(tenant_id)))
    assert keeper.store.calls == []
