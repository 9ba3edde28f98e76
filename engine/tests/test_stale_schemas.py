"""Writing a connection forgets its cached schema (spec 12, 21.6)."""

import pytest

from fetcher_engine import SchemaSnapshot
from fetcher_engine.memory import MemorySchemaCache

from .keepers import OPERATIONS, RECORD, T1, Keeper, a_connection
from .loops import every_loop, run
from .refusals import leaky

pytestmark = every_loop


@pytest.mark.parametrize("operation", ["create", "update", "delete", "update_by_id"])
def test_writing_a_connection_forgets_its_cached_schema(operation: str) -> None:
    cache = MemorySchemaCache()
    keeper = Keeper(cache=cache)
    if operation != "create":
        keeper.store.put(T1, RECORD)
    run(cache.put_schema(T1, SchemaSnapshot("c"), "f"))
    run(OPERATIONS[operation](keeper, T1))
    assert cache.stored(T1, "c") is None


def test_cache_that_cannot_forget_stops_no_write() -> None:
    cache = MemorySchemaCache()
    cache.invalidate_error = leaky()
    keeper = Keeper(cache=cache)
    run(keeper.by_name.create(T1, a_connection()))
    assert len(run(keeper.by_name.list(T1))) == 1
