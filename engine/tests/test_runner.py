"""Executing a plan (spec 21.9 and 21.11, with the document of design section 5)."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    Batch,
    EncodedBatch,
    EngineError,
    ErrorCategory,
    ExecutionStatus,
    ExtractionPlan,
    ExtractionResult,
    Limits,
    PlanStep,
    RowBatch,
    SequentialConcurrency,
    SourceFailure,
    Stage,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import (
    ManualClock,
    MemorySource,
    RecordingExecutionStore,
    run_trampoline,
)

from .hosts import TENANT, Host, direct_of, host_of
from .loops import AsyncioLoop, TrampolineLoop, TrioLoop
from .refusals import SENTINEL, leaky, refuses

AnyLoop = TrampolineLoop | AsyncioLoop | TrioLoop
RealLoop = AsyncioLoop | TrioLoop
COMPLETED, FAILED, RUNNING, CANCELED = (
    ExecutionStatus.COMPLETED,
    ExecutionStatus.FAILED,
    ExecutionStatus.RUNNING,
    ExecutionStatus.CANCELED,
)
TWO = {"a": {"t": [{"x": 1}, {"x": 2}, {"x": 3}]}, "b": {"t": [{"x": 4}, {"x": 5}]}}
TWO_DOCUMENT = b'{"a":{"t":[{"x":1},{"x":2},{"x":3}]},"b":{"t":[{"x":4},{"x":5}]}}'


def execute(host: Host, loop: AnyLoop | None = None, **changes: Any) -> ExtractionResult:
    """Plan everything, then execute it as job j1."""

    async def main() -> ExtractionResult:
        plan = replace(await host.plan_all(), **{"request_id": "j1", **changes})
        for factory in host.factories.values():
            factory.built.clear()
        return await host.engine.execute_extraction(plan)

    return (loop or TrampolineLoop()).run(main)


def one_step(fields: dict[str, tuple[str, ...]], name: str = "a", **rest: Any) -> ExtractionPlan:
    steps = (PlanStep(ordinal=0, config_name=name, fields=fields, **rest),)
    return ExtractionPlan(tenant_id="acme", request_id="j1", steps=steps, limits=Limits.defaults())


def run_plan(host: Host, plan: ExtractionPlan) -> ExtractionResult:
    return run_trampoline(host.engine.execute_extraction(plan))


def test_one_source() -> None:
    host = host_of({"a": {"t": [{"x": 1}, {"x": 2}]}})
    result = execute(host)
    assert direct_of(result).data == b'{"a":{"t":[{"x":1},{"x":2}]}}'
    assert direct_of(result).row_count == 2
    assert direct_of(result).plaintext_size == len(direct_of(result).data)
    assert direct_of(result).integrity.digest == hashlib.sha256(direct_of(result).data).hexdigest()
    assert direct_of(result).integrity.algorithm == "SHA-256"
    assert result.state.to_public_dict() == {
        "jobId": "j1",
        "status": "completed",
        "startedAt": "2031-04-05T06:07:08Z",
        "completedAt": "2031-04-05T06:07:08Z",
    }
    connector = host.factories["a"].last_built
    assert connector.calls == ["test_connection", "open_stream", "close"]
    assert [stream.close_count for stream in connector.streams] == [1]


def test_two_sources(any_loop: AnyLoop) -> None:
    host = host_of(TWO, any_loop.concurrency)
    result = execute(host, any_loop)
    assert direct_of(result).data == TWO_DOCUMENT
    assert result.row_counts == {"a": 3, "b": 2}
    assert direct_of(result).row_count == 5
    assert host.close_counts() == [1, 1]


def test_bytes_are_the_same_in_every_run(loop: RealLoop) -> None:
    rows = {n: {"t": [{"i": i, "n": n} for i in range(9)]} for n in "abcdef"}
    runs = set()
    for _ in range(20):
        host = host_of(rows, loop.concurrency)
        for source in host.sources.values():
            source.rows_per_batch = 2
            source.before_batch = loop.pause
        direct = execute(host, loop).direct
        runs.add((direct.data, direct.integrity.digest))
    assert len(runs) == 1


def test_streamed_bytes_are_those_of_the_direct_result(any_loop: AnyLoop) -> None:
    host = host_of(TWO, any_loop.concurrency)
    received: list[bytes] = []
    progress: list[tuple[str, str, int, int]] = []

    async def write(piece: bytes | memoryview) -> None:
        received.append(bytes(piece))

    async def main() -> None:
        summary = await host.engine.stream_extraction(
            await host.plan_all(), write, progress=lambda *seen: progress.append(seen)
        )
        assert (summary.row_count, summary.row_counts) == (5, {"a": 3, "b": 2})
        assert summary.size_bytes == len(TWO_DOCUMENT)
        assert summary.sha256 == hashlib.sha256(TWO_DOCUMENT).hexdigest()
        assert summary.completed_at == host.clock.now()

    any_loop.run(main)
    assert b"".join(received) == TWO_DOCUMENT
    assert sorted(progress) == [("a", "t", 3, 23), ("b", "t", 2, 15)]


def test_progress_counts_up_within_a_table_and_anew_in_the_next() -> None:
    host = host_of({"a": {"t": [{"x": 1}] * 3, "u": [{"x": 1}]}})
    host.sources["a"].rows_per_batch = 2
    seen: list[tuple[str, str, int, int]] = []

    async def write(piece: bytes | memoryview) -> None: ...

    async def main() -> None:
        plan = await host.plan_all()
        await host.engine.stream_extraction(plan, write, progress=lambda *p: seen.append(p))

    run_trampoline(main())
    assert seen == [("a", "t", 2, 15), ("a", "t", 3, 22), ("a", "u", 1, 7)]


def test_table_without_rows_is_an_empty_list() -> None:
    """Design section 5 replaces spec 21.9, where the table was absent."""
    host = host_of({"x": {}})
    plan = one_step({"t": ("a",), "u": ("a",)}, "x")
    result = run_plan(host, plan)
    assert direct_of(result).data == b'{"x":{"t":[],"u":[]}}'
    assert result.row_counts == {"x": 0}


def test_tables_are_passed_over_between_others() -> None:
    rows = {"b": [{"n": 1}], "d": [{"n": 2}]}
    host = host_of({"x": rows})
    plan = one_step(dict.fromkeys("edcba", ("n",)), "x")
    assert run_plan(host, plan).direct.data == (
        b'{"x":{"a":[],"b":[{"n":1}],"c":[],"d":[{"n":2}],"e":[]}}'
    )


def test_plan_without_steps_is_an_empty_document() -> None:
    host = host_of({})
    plan = ExtractionPlan(tenant_id="acme", steps=(), limits=Limits())
    result = run_plan(host, plan)
    assert (direct_of(result).data, direct_of(result).row_count) == (b"{}", 0)


def test_connector_receives_its_own_part_of_the_plan() -> None:
    leaf = {"eq": [1]}
    host = host_of(TWO)
    plan = one_step({"t": ("x",)}, filters={"t": {"x": leaf}})
    run_plan(host, plan)
    (request,) = host.factories["a"].last_built.requests
    assert request == StreamRequest(
        config_name="a", tables={"t": ("x",)}, filters={"t": {"x": leaf}}
    )
    assert SENTINEL not in repr(replace(request, filters={"t": {"x": SENTINEL}}))


def batches_of(*batches: Batch) -> MemorySource:
    def make(request: StreamRequest) -> Iterable[Batch]:
        return batches

    return MemorySource(batches=make)


def test_encoded_and_row_batches_mix() -> None:
    source = batches_of(
        EncodedBatch("t", b'{"x":1},{"x":2}', 2),
        EncodedBatch("t", b"", 0),
        RowBatch("t", [{"x": 3}]),
        RowBatch("t", []),
        EncodedBatch("u", b'{"y":1}', 1),
    )
    plan = one_step({"t": ("x",), "u": ("y",)})
    result = run_plan(Host({"a": source}), plan)
    assert direct_of(result).data == b'{"a":{"t":[{"x":1},{"x":2},{"x":3}],"u":[{"y":1}]}}'
    assert direct_of(result).row_count == 4


def test_large_encoded_batch_is_passed_through_uncopied() -> None:
    data = b'{"x":"' + b"y" * 200_000 + b'"}'
    received: list[bytes | memoryview] = []

    async def write(piece: bytes | memoryview) -> None:
        received.append(piece)

    host = Host({"a": batches_of(EncodedBatch("t", data, 1), EncodedBatch("t", data, 1))})
    run_trampoline(host.engine.stream_extraction(one_step({"t": ("x",)}), write))
    assert [piece is data for piece in received] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        ([EncodedBatch("t", b"{}", 0)], "malformed_batch"),
        ([EncodedBatch("t", b"", 1)], "malformed_batch"),
        (["text"], "malformed_batch"),
        ([EncodedBatch("v", b"{}", 1)], "table_out_of_order"),
        ([EncodedBatch("u", b"{}", 1), EncodedBatch("t", b"{}", 1)], "table_out_of_order"),
    ],
)
def test_batch_that_breaks_the_contract_is_a_contained_crash(batches: Any, reason: str) -> None:
    host = Host({"a": batches_of(*batches)})
    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly") as caught:
        run_plan(host, one_step({"t": ("x",), "u": ("x",)}))
    assert (caught.value.source, caught.value.reason) == ("a", reason)
    assert host.close_counts() == [1]


@pytest.mark.parametrize(
    ("fault", "category", "message", "closed"),
    [
        (
            "test_error",
            ErrorCategory.CONNECT,
            "failed to connect to datasource",
            ["test_connection"],
        ),
        (
            "query_error",
            ErrorCategory.UNAVAILABLE,
            "failed to query datasource",
            ["test_connection", "open_stream"],
        ),
        (
            "stream_error",
            ErrorCategory.UNAVAILABLE,
            "failed to query datasource",
            ["test_connection", "open_stream"],
        ),
    ],
)
def test_source_that_fails(
    any_loop: AnyLoop, fault: str, category: ErrorCategory, message: str, closed: list[str]
) -> None:
    host = host_of({"a": TWO["a"]}, any_loop.concurrency)

    async def main() -> None:
        plan = replace(await host.plan_all(), request_id="j1")
        setattr(host.sources["a"], fault, leaky())
        await host.engine.execute_extraction(plan)

    with refuses(category, message) as caught:
        any_loop.run(main)
    connector = host.factories["a"].last_built
    assert connector.calls == [*closed, "close"]
    assert all(stream.close_count == 1 for stream in connector.streams)
    assert caught.value.source == "a"
    assert host.executions.statuses == [RUNNING, FAILED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert (state.failure_message, state.started_at) == (message, host.clock.now())


def test_failure_in_the_middle_of_the_rows_names_table_and_column() -> None:
    host = host_of({"a": {"t": [{"x": 1}] * 4}})
    source = host.sources["a"]
    source.rows_per_batch = 1
    source.stream_error = SourceFailure(Stage.ROWS, "invalid_text", table="t", column="x")
    source.stream_fail_after = 3
    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource") as caught:
        execute(host)
    error = caught.value
    assert (error.stage, error.reason, error.table, error.column) == (
        Stage.ROWS,
        "invalid_text",
        "t",
        "x",
    )


@pytest.mark.parametrize(
    ("stage", "reason", "category", "text"),
    [
        (Stage.QUERY, "invalid_filter", "validation", "extraction request has an invalid filter"),
        (
            Stage.QUERY,
            "invalid_filter_value",
            "validation",
            "extraction request has an invalid filter",
        ),
        (Stage.QUERY, "timeout", "timeout", "failed to query datasource"),
        (Stage.ROWS, "timeout", "timeout", "failed to query datasource"),
        (Stage.QUERY, "lock_timeout", "unavailable", "failed to query datasource"),
        (Stage.TCP, "timeout", "connect", "failed to connect to datasource"),
    ],
)
def test_the_connectors_word_decides_the_category(
    stage: Stage, reason: str, category: str, text: str
) -> None:
    host = host_of({"a": {"t": [{"x": 1}]}})
    host.sources["a"].query_error = SourceFailure(stage, reason, table="t", column="x")
    with refuses(ErrorCategory(category), text) as caught:
        execute(host)
    assert (caught.value.stage, caught.value.reason) == (stage, reason)


def test_failed_clean_up_does_not_spoil_a_success() -> None:
    host = host_of(TWO)
    for source in host.sources.values():
        source.close_error = leaky()
    assert execute(host).direct.data == TWO_DOCUMENT


def test_second_source_that_fails_leaves_nothing_open(any_loop: AnyLoop) -> None:
    host = host_of(TWO, any_loop.concurrency)
    host.sources["b"].query_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE) as caught:
        execute(host, any_loop)
    assert caught.value.source == "b"
    assert set(host.close_counts()) == {1}


def test_build_that_fails_or_builds_nothing() -> None:
    host = host_of({"a": TWO["a"]})
    plan = one_step({"t": ("x",)})
    host.factories["a"].builds_nothing = True
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run_plan(host, plan)
    host.factories["a"].build_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run_plan(host, plan)
    assert host.close_counts() == []


def test_connection_deleted_after_planning_is_unknown() -> None:
    host = host_of(TWO)
    plan = run_trampoline(host.plan_all())
    run_trampoline(host.engine.connections.delete(TENANT, "b"))
    with refuses(ErrorCategory.NOT_FOUND, "extraction references an unknown datasource connection"):
        run_plan(host, plan)


def test_plan_of_another_tenant_finds_nothing() -> None:
    host = host_of(TWO)
    plan = replace(run_trampoline(host.plan_all()), tenant_id="other")
    with refuses(ErrorCategory.NOT_FOUND):
        run_plan(host, plan)


def test_plan_without_a_tenant_reaches_no_store() -> None:
    host = host_of(TWO)
    with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
        run_plan(host, replace(one_step({"t": ("x",)}), tenant_id=""))
    assert (host.store.calls, host.executions.statuses) == ([], [])


@pytest.mark.parametrize(
    "steps",
    [
        (PlanStep(ordinal=1, config_name="a", fields={"t": ("x",)}),),
        (
            PlanStep(ordinal=0, config_name="b", fields={"t": ("x",)}),
            PlanStep(ordinal=1, config_name="a", fields={"t": ("x",)}),
        ),
        (
            PlanStep(ordinal=0, config_name="a", fields={"t": ("x",)}),
            PlanStep(ordinal=1, config_name="a", fields={"t": ("x",)}),
        ),
    ],
)
def test_plan_made_by_hand_must_be_sound(steps: tuple[PlanStep, ...]) -> None:
    host = host_of(TWO)
    plan = ExtractionPlan(tenant_id="acme", steps=steps, limits=Limits())
    with refuses(ErrorCategory.VALIDATION, "extraction plan is invalid"):
        run_plan(host, plan)
    assert host.store.calls == []


def test_planners_connector_is_not_the_runners() -> None:
    host = host_of({"a": TWO["a"]})
    plan = run_trampoline(host.plan_all())
    run_plan(host, plan)
    planners, runners = host.factories["a"].built
    assert planners is not runners
    assert host.close_counts() == [1, 1]


# --- size limit --------------------------------------------------------------------------------


def test_document_of_exactly_the_limit_passes_and_one_byte_more_does_not(
    any_loop: AnyLoop,
) -> None:
    limits = Limits(max_result_bytes=len(TWO_DOCUMENT))
    host = host_of(TWO, any_loop.concurrency, limits=limits)
    assert execute(host, any_loop).direct.data == TWO_DOCUMENT
    tight = host_of(
        TWO, any_loop.concurrency, limits=Limits(max_result_bytes=len(TWO_DOCUMENT) - 1)
    )
    with refuses(
        ErrorCategory.LIMIT_EXCEEDED, "extraction result exceeds the configured size limit"
    ):
        execute(tight, any_loop)
    assert set(tight.close_counts()) == {1}
    assert tight.executions.statuses == [RUNNING, FAILED]


def test_plan_cannot_raise_the_engines_limits() -> None:
    host = host_of(TWO, limits=Limits(max_result_bytes=10))
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits.defaults())


def test_nothing_is_connected_when_the_empty_document_is_too_large() -> None:
    host = host_of(TWO)
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits(max_result_bytes=8))
    assert host.close_counts() == []


def test_reading_stops_with_the_batch_that_passes_the_limit() -> None:
    host = host_of({"a": {"t": [{"x": 1}] * 100}})
    host.sources["a"].rows_per_batch = 10
    reads = 0

    async def count() -> None:
        nonlocal reads
        reads += 1

    host.sources["a"].before_batch = count
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits(max_result_bytes=200))
    # 13 bytes around the rows, 79 a batch of ten, one comma between batches: the third is too much
    assert reads == 3


def test_no_byte_beyond_the_limit_is_written() -> None:
    host = host_of({"a": {"t": [{"x": "y" * 70_000}] * 5}}, limits=Limits(max_result_bytes=200_000))
    host.sources["a"].rows_per_batch = 1
    written = 0

    async def write(piece: bytes | memoryview) -> None:
        nonlocal written
        written += len(piece)

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        run_trampoline(main())
    assert 140_000 < written <= 200_000


# --- values ------------------------------------------------------------------------------------


def cycle() -> object:
    endless: list[object] = []
    endless.append(endless)
    return endless


class Hostile:
    """A driver's object that fails however it is touched."""

    def __repr__(self) -> str:
        raise leaky()

    def __getattribute__(self, name: str) -> Any:
        raise leaky()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda: None, "not_encodable"),
        (cycle(), "not_encodable"),
        ({1.5: 1}, "not_encodable"),
        ({True: 1}, "not_encodable"),
        (object(), "not_encodable"),
        (Hostile(), "not_encodable"),
        ("\ud800", "invalid_text"),
        ({"k": ["\udfff"]}, "invalid_text"),
    ],
    ids=["function", "cycle", "float key", "bool key", "object", "hostile", "surrogate", "nested"],
)
def test_value_without_a_json_form_fails_and_its_place_is_named(value: object, reason: str) -> None:
    host = host_of({"a": {"t": [{"ok": 1, "x": 1}, {"ok": 1, "x": value}]}})
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result") as caught:
        execute(host)
    error = caught.value
    assert (error.source, error.table, error.column) == ("a", "t", "x")
    assert error.reason == reason
    assert "Hostile" not in str(error)
    assert set(host.close_counts()) == {1}


def test_row_that_is_no_mapping_fails() -> None:
    host = Host({"a": batches_of(RowBatch("t", [("x", 1)]))})  # type: ignore[list-item]  # wrong on purpose
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result") as caught:
        run_plan(host, one_step({"t": ("x",)}))
    assert (caught.value.table, caught.value.column) == ("t", None)


def test_name_that_is_no_unicode_fails() -> None:
    host = host_of({"a": {"\ud800": []}})
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result"):
        run_plan(host, one_step({"\ud800": ("x",)}))


# --- the host's write --------------------------------------------------------------------------


def test_failed_write_ends_the_run_with_the_hosts_exception_to_unwrap(any_loop: AnyLoop) -> None:
    host = host_of(TWO, any_loop.concurrency)
    lost = leaky(OSError)

    async def write(piece: bytes | memoryview) -> None:
        raise lost

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.UNAVAILABLE, "failed to persist extraction result") as caught:
        any_loop.run(main)
    assert caught.value.unwrap() is lost
    assert set(host.close_counts()) == {1}


def test_engine_error_of_a_write_passes() -> None:
    host = host_of(TWO)
    own = EngineError(ErrorCategory.CONFLICT, "lease lost")

    async def write(piece: bytes | memoryview) -> None:
        raise own

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.CONFLICT) as caught:
        run_trampoline(main())
    assert caught.value is own


def test_progress_that_fails_is_a_contained_crash() -> None:
    host = host_of({"a": TWO["a"]})

    async def write(piece: bytes | memoryview) -> None: ...

    def progress(*seen: object) -> None:
        raise leaky()

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write, progress=progress)

    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly"):
        run_trampoline(main())
    assert set(host.close_counts()) == {1}


def test_crash_in_one_step_stops_the_others(loop: RealLoop) -> None:
    host = host_of(TWO, loop.concurrency)

    def crash(request: StreamRequest) -> Iterable[Batch]:
        raise MemoryError(SENTINEL)

    async def main() -> None:
        plan = await host.plan_all()
        host.sources["a"].before_batch = loop.hang
        host.sources["b"].batches = crash
        await host.engine.execute_extraction(plan)

    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource"):
        loop.run(main)
    assert set(host.close_counts()) == {1}


# --- states ------------------------------------------------------------------------------------


def test_states_of_a_success(any_loop: AnyLoop) -> None:
    host = host_of(TWO, any_loop.concurrency)
    execute(host, any_loop)
    assert host.executions.statuses == [RUNNING, COMPLETED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert state.started_at == state.completed_at == host.clock.now()


def test_execution_without_an_id_writes_no_state() -> None:
    host = host_of(TWO)
    execute(host, request_id="")
    assert host.executions.statuses == []


def test_execution_store_that_fails_changes_nothing() -> None:
    host = host_of(TWO)
    host.executions.save_error = leaky()
    assert execute(host).direct.data == TWO_DOCUMENT
    assert host.executions.statuses == [RUNNING, COMPLETED]


# --- without a concurrency port ----------------------------------------------------------------


def test_sequential_fallback_notices_its_deadline_between_batches() -> None:
    clock = ManualClock()
    host = host_of(TWO, SequentialConcurrency(monotonic=clock.monotonic), limits=Limits(timeout=5))
    batches = 0

    async def slow() -> None:
        nonlocal batches
        batches += 1
        clock.advance(3)

    for source in host.sources.values():
        source.rows_per_batch = 1
        source.before_batch = slow
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        execute(host)
    assert batches == 2
    assert host.close_counts() == [1]
    assert host.executions.statuses == [RUNNING, FAILED]


def test_sequential_fallback_starts_the_next_source_when_one_has_ended() -> None:
    host = host_of(TWO)
    order: list[str] = []

    def note(name: str) -> Any:
        async def hook() -> None:
            order.append(name)

        return hook

    for name, source in host.sources.items():
        source.before_query = note(f"{name} opens")
        source.before_close = note(f"{name} closes")
    plan = run_trampoline(host.plan_all())
    order.clear()
    run_plan(host, plan)
    assert order == ["a opens", "a closes", "b opens", "b closes"]


def test_engine_serves_concurrent_calls_without_a_port(loop: RealLoop) -> None:
    """Each call of the fallback has its own deadlines."""
    host = host_of(TWO)
    for source in host.sources.values():
        source.before_batch = loop.pause
    assert loop.concurrency is not None
    documents: list[bytes] = []

    async def one() -> None:
        result = await host.engine.execute_extraction(await host.plan_all())
        documents.append(direct_of(result).data)

    async def main() -> None:
        await loop.concurrency.run_ordered([one] * 5, 5)

    loop.run(main)
    assert documents == [TWO_DOCUMENT] * 5


def test_state_of_a_tenant_is_kept_apart() -> None:
    store = RecordingExecutionStore()
    host = host_of(TWO)
    execute(host)
    assert host.executions.find(TenantContext("other"), "j1") is None
    assert store.find(TENANT, "j1") is None
