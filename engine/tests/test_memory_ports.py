"""The harness itself (spec 21.12)."""

import pytest

from fetcher_engine import ConnectionDescriptor, StreamRequest, TenantContext
from fetcher_engine.memory import (
    ManualClock,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
    run_trampoline,
)

TENANT = TenantContext.new("t1")
DESCRIPTOR = ConnectionDescriptor(config_name="c", type="T")


def test_rows_come_by_table_then_in_their_order_in_batches() -> None:
    source = MemorySource.of_rows(
        {"b": [{"x": 1}], "a": [{"x": 2, "y": 0}, {"x": 3}, {"x": 4}]}, rows_per_batch=2
    )
    connector = MemoryConnectorFactory(source).build(DESCRIPTOR)

    async def main() -> list[object]:
        request = StreamRequest(config_name="c", tables={"b": ("x",), "a": ("x",)})
        stream = await connector.open_stream(request)
        batches = []
        while (batch := await stream.next_batch()) is not None:
            batches.append(batch)
        assert await stream.next_batch() is None
        return [(batch.table, batch.rows) for batch in batches]  # type: ignore[union-attr]  # rows

    assert run_trampoline(main()) == [
        ("a", [{"x": 2}, {"x": 3}]),
        ("a", [{"x": 4}]),
        ("b", [{"x": 1}]),
    ]


def test_last_factory_registered_for_a_type_wins() -> None:
    registry = MemoryRegistry()
    first, second = (MemoryConnectorFactory(MemorySource()) for _ in range(2))
    assert registry.connector("T") is None
    registry.register("T", first)
    registry.register("T", second)
    assert registry.connector("T") is second


def test_trampoline_refuses_what_waits_for_a_loop() -> None:
    closed: list[bool] = []

    class Suspend:
        def __await__(self):  # type: ignore[no-untyped-def]  # a bare suspension
            yield

    async def main() -> None:
        try:
            await Suspend()
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run_trampoline(main())
    assert closed == [True]


def test_manual_clock_moves_when_told() -> None:
    clock = ManualClock()
    before = clock.now()
    clock.advance(2.5)
    assert (clock.now() - before).total_seconds() == clock.monotonic() == 2.5
