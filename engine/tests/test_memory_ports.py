"""The harness itself (spec 21.12)."""

import hashlib
from collections.abc import Awaitable, Callable

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    EngineError,
    ErrorCategory,
    ResultReference,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import (
    ManualClock,
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemoryResultSink,
    MemorySource,
    run_trampoline,
)

from .loops import RealLoop, every_loop, run
from .refusals import refuses

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


def test_stream_that_waits_is_cancelled_and_may_be_closed_twice(loop: RealLoop) -> None:
    """A cancellation goes through; the reference's cursor kept it as its error (spec 19.5)."""
    source = MemorySource.of_rows({"t": [{"x": 1}]})
    waiting: list[bool] = []
    seen: list[object] = []

    async def hang() -> None:
        waiting.append(True)
        await loop.hang()

    source.before_batch = hang
    connector = MemoryConnectorFactory(source).build(DESCRIPTOR)

    async def main() -> None:
        stream = await connector.open_stream(StreamRequest(config_name="c", tables={"t": ("x",)}))
        try:
            seen.append(await stream.next_batch())
        finally:
            await stream.aclose()
            await stream.aclose()

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(waiting))) == "cancelled"
    assert seen == []
    assert [stream.close_count for stream in connector.streams] == [2]


def test_concurrent_creations_of_one_name_leave_one_record(loop: RealLoop) -> None:
    store = MemoryConnectionStore()
    stored: list[int] = []
    refused: list[ErrorCategory] = []

    def job(port: int) -> Callable[[], Awaitable[None]]:
        async def create() -> None:
            await loop.pause()
            new = ConnectionDescriptor(config_name="c", type="T", port=port)
            try:
                await store.create(TENANT, new, None)
                stored.append(port)
            except EngineError as error:
                refused.append(error.category)
            await loop.pause()
            found = await store.find_connection(TENANT, "c")
            assert found is not None
            assert found.port == stored[0]

        return create

    async def main() -> None:
        assert loop.concurrency is not None
        await loop.concurrency.run_ordered([job(port) for port in range(50)], 50)

    loop.run(main)
    assert (len(stored), refused) == (1, [ErrorCategory.CONFLICT] * 49)


@every_loop
def test_same_bytes_stored_twice_have_two_paths_and_one_digest() -> None:
    sink = MemoryResultSink()

    async def store() -> ResultReference:
        stream = await sink.open_result_stream(TENANT)
        assert await stream.write(b"x\n") == 2
        return await stream.close()

    first, second = run(store), run(store)
    digest = hashlib.sha256(b"x\n").hexdigest()
    assert [first.path, second.path] == [f"memory://t1/{digest}-1", f"memory://t1/{digest}-2"]
    assert first.integrity == second.integrity
    assert first.integrity.digest == digest
    assert [sink.get(path) for path in (first.path, second.path)] == [b"x\n"] * 2
    assert sink.stored_count == 2


def test_unknown_type_is_none_or_an_error_as_one_asks() -> None:
    registry = MemoryRegistry({"T": MemoryConnectorFactory(MemorySource())})
    assert registry.lookup_or_error("T") is registry.connector("T")
    with refuses(ErrorCategory.NOT_FOUND, "no connector registered for datasource type X"):
        registry.lookup_or_error("X")


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
