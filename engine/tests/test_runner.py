"""Executing a plan (spec 21.9, with the document of design section 5)."""

import hashlib
from dataclasses import replace

import pytest

from fetcher_engine import ErrorCategory, ExtractionPlan, Limits, PlanStep, StreamRequest

from .hosts import direct_of, host_of
from .loops import AnyLoop, every_loop, run
from .plans import TWO, TWO_DOCUMENT, execute, one_step, run_plan
from .refusals import SENTINEL, refuses

pytestmark = every_loop


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


def test_two_sources() -> None:
    host = host_of(TWO)
    result = execute(host)
    assert direct_of(result).data == TWO_DOCUMENT
    assert result.row_counts == {"a": 3, "b": 2}
    assert direct_of(result).row_count == 5
    assert host.close_counts() == [1, 1]


def test_bytes_are_the_same_in_every_run(any_loop: AnyLoop) -> None:
    rows = {n: {"t": [{"i": i, "n": n} for i in range(9)]} for n in "abcdef"}
    runs = set()
    for _ in range(20):
        host = host_of(rows)
        for source in host.sources.values():
            source.rows_per_batch = 2
            source.before_batch = any_loop.pause
        direct = direct_of(execute(host))
        runs.add((direct.data, direct.integrity.digest))
    assert len(runs) == 1


def test_streamed_bytes_are_those_of_the_direct_result() -> None:
    host = host_of(TWO)
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

    run(main)
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

    run(main())
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
    assert direct_of(run_plan(host, plan)).data == (
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


def test_plan_of_another_tenant_finds_nothing() -> None:
    host = host_of(TWO)
    plan = replace(run(host.plan_all()), tenant_id="other")
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
    plan = run(host.plan_all())
    run_plan(host, plan)
    planners, runners = host.factories["a"].built
    assert planners is not runners
    assert host.close_counts() == [1, 1]
