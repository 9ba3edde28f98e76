"""Store mode: rows as lines in the host's sink (spec 10.5, 11.2, 21.10)."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    EncodedBatch,
    ErrorCategory,
    ExecutionMode,
    ExtractionResult,
    Limits,
    ProtectionOwner,
    ResultProtection,
    ResultReference,
    RowBatch,
)
from fetcher_engine.memory import MemoryResultSink

from .hosts import Host, direct_of, host_of
from .loops import every_loop, run
from .plans import COMPLETED, RUNNING, TWO, TWO_DOCUMENT, batches_of, execute, one_step, run_plan
from .refusals import refuses

pytestmark = every_loop

STORE, DIRECT = ExecutionMode.STORE, ExecutionMode.DIRECT


def storing_host(rows: Any, **options: Any) -> tuple[Host, MemoryResultSink]:
    sink = MemoryResultSink()
    return host_of(rows, result_sink=sink, **options), sink


def reference_of(result: ExtractionResult) -> ResultReference:
    assert result.direct is None
    assert result.reference is not None
    return result.reference


def stored(sink: MemoryResultSink, result: ExtractionResult) -> bytes:
    data = sink.get(reference_of(result).path)
    assert data is not None
    return data


def test_with_a_sink_the_rows_go_there_and_only_a_reference_comes_back() -> None:
    host, sink = storing_host({"crm-pg": {"orders": [{"note": "ok", "id": 7}]}})
    result = execute(host)
    line = b'{"config":"crm-pg","table":"orders","row":{"id":7,"note":"ok"}}\n'
    assert stored(sink, result) == line
    digest = hashlib.sha256(line).hexdigest()
    reference = reference_of(result)
    assert reference.path == f"memory://acme/{digest}-1"
    assert (reference.format, reference.row_count, reference.size_bytes) == ("ndjson", 1, len(line))
    assert (reference.integrity.algorithm, reference.integrity.digest) == ("SHA-256", digest)
    assert reference.completed_at == host.clock.now()
    assert (dict(result.row_counts), result.state.status) == ({"crm-pg": 1}, COMPLETED)
    assert host.executions.statuses == [RUNNING, COMPLETED]
    assert (sink.open_count, sink.close_count, sink.abort_count) == (1, 1, 0)
    assert host.close_counts() == [1]


def test_direct_mode_never_touches_the_sink() -> None:
    host, sink = storing_host(TWO)
    assert direct_of(execute(host, mode=DIRECT)).data == TWO_DOCUMENT
    assert sink.open_count == 0


def test_stream_is_the_document_whatever_the_mode() -> None:
    host, sink = storing_host(TWO)
    received = bytearray()

    async def write(piece: bytes | memoryview) -> None:
        received.extend(piece)

    async def main() -> None:
        plan = replace(await host.plan_all(), mode=STORE)
        await host.engine.stream_extraction(plan, write)

    run(main())
    assert bytes(received) == TWO_DOCUMENT
    assert sink.open_count == 0


def test_explicit_store_mode_with_a_sink_stores() -> None:
    host, sink = storing_host(TWO)
    assert stored(sink, execute(host, mode=STORE)).count(b"\n") == 5


def test_rows_are_written_256_at_a_time() -> None:
    rows = [{"id": n} for n in range(2000)]
    host, sink = storing_host({"a": {"t": rows}})
    lines = stored(sink, execute(host)).splitlines(keepends=True)
    assert [json.loads(line)["row"]["id"] for line in lines] == list(range(2000))
    writes = [256] * 7 + [2000 - 7 * 256]
    sizes = [sum(map(len, lines[i * 256 : i * 256 + n])) for i, n in enumerate(writes)]
    assert sink.write_sizes == sizes


def test_wide_rows_are_written_a_mebibyte_at_a_time() -> None:
    rows = [{"x": "y" * 300_000} for _ in range(9)]
    host, sink = storing_host({"a": {"t": rows}})
    execute(host)
    line = 300_000 + len('{"config":"a","table":"t","row":{"x":""}}\n')
    assert sink.write_sizes == [4 * line, 4 * line, line]


def test_lines_are_in_the_order_of_the_plan() -> None:
    host, sink = storing_host({"zzz": {"t": [{"i": 3}]}, "aaa": {"t": [{"i": 1}, {"i": 2}]}})
    lines = stored(sink, execute(host)).decode().splitlines()
    assert [json.loads(line)["config"] for line in lines] == ["aaa", "aaa", "zzz"]


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_every_run_has_the_same_lines(max_concurrency: int) -> None:
    data = {name: {"t": [{"id": n} for n in range(900)]} for name in "abc"}
    host, sink = storing_host(data, limits=Limits(max_concurrency=max_concurrency))
    results = [execute(host) for _ in range(5)]
    assert {reference_of(result).row_count for result in results} == {2700}
    assert len({stored(sink, result) for result in results}) == 1
    assert len({reference_of(result).path for result in results}) == 5
    assert len({reference_of(result).integrity.digest for result in results}) == 1


def test_tables_may_come_in_any_order_and_in_either_form() -> None:
    source = batches_of(
        RowBatch("u", [{"k": "},{"}]),
        EncodedBatch("t", b'{"a":1},{"a":{"b":"}"}},{"a":[{"c":1},{"c":2}]}', 3),
        EncodedBatch("t", b'{"a":"\\"},{\\\\"}', 1),
        RowBatch("u", []),
    )
    sink = MemoryResultSink()
    host = Host({"a": source}, options={"result_sink": sink})
    result = run_plan(host, one_step({"t": ("a",), "u": ("k",)}))
    assert stored(sink, result).decode().splitlines() == [
        '{"config":"a","table":"u","row":{"k":"},{"}}',
        '{"config":"a","table":"t","row":{"a":1}}',
        '{"config":"a","table":"t","row":{"a":{"b":"}"}}}',
        '{"config":"a","table":"t","row":{"a":[{"c":1},{"c":2}]}}',
        '{"config":"a","table":"t","row":{"a":"\\"},{\\\\"}}',
    ]


def test_source_without_rows_leaves_an_empty_result() -> None:
    host, sink = storing_host({"a": {"t": [{"x": 1}]}})
    host.sources["a"].rows = {"t": []}
    result = execute(host)
    assert stored(sink, result) == b""
    assert dict(result.row_counts) == {"a": 0}
    assert reference_of(result).integrity.digest == hashlib.sha256(b"").hexdigest()


def test_plan_without_steps_stores_an_empty_result() -> None:
    host, sink = storing_host({})
    plan = replace(one_step({"t": ()}), steps=())
    assert stored(sink, run_plan(host, plan)) == b""
    assert sink.write_sizes == []


def test_exactly_the_limit_is_stored() -> None:
    size = len(TWO_LINES)
    host, sink = storing_host(TWO, limits=Limits(max_result_bytes=size))
    assert stored(sink, execute(host)) == TWO_LINES


TWO_LINES = b"".join(
    b'{"config":"%b","table":"t","row":{"x":%d}}\n' % (name, x)
    for name, x in [(b"a", 1), (b"a", 2), (b"a", 3), (b"b", 4), (b"b", 5)]
)


def test_protection_that_the_sink_reports_is_preserved() -> None:
    host, sink = storing_host(TWO)
    sink.protection = ResultProtection(
        encrypted=True, mode="AES-256-GCM", applied_by=ProtectionOwner.ADAPTER, key_version="7"
    )
    sink.digest = "0" * 64  # of the encrypted bytes: the Engine cannot judge it
    reference = reference_of(execute(host))
    assert reference.protection == sink.protection
    assert reference.integrity.digest == "0" * 64


def test_what_the_sink_leaves_open_the_engine_fills_in() -> None:
    host, sink = storing_host(TWO)
    sink.omits_integrity = sink.omits_size = True
    reference = reference_of(execute(host))
    assert reference.integrity.digest == hashlib.sha256(TWO_LINES).hexdigest()
    assert reference.integrity.algorithm == "SHA-256"
    assert reference.size_bytes == len(TWO_LINES)


def test_json_of_a_stored_result_holds_no_data_and_no_secret() -> None:
    host, _ = storing_host({"a": {"t": [{"x": 1}]}})
    public = execute(host).to_public_dict()
    line = b'{"config":"a","table":"t","row":{"x":1}}\n'
    assert public == {
        "state": {
            "jobId": "j1",
            "status": "completed",
            "startedAt": "2031-04-05T06:07:08Z",
            "completedAt": "2031-04-05T06:07:08Z",
        },
        "reference": {
            "path": f"memory://acme/{hashlib.sha256(line).hexdigest()}-1",
            "format": "ndjson",
            "rowCount": 1,
            "sizeBytes": len(line),
            "integrity": {"algorithm": "SHA-256", "digest": hashlib.sha256(line).hexdigest()},
            "completedAt": "2031-04-05T06:07:08Z",
        },
        "rowCounts": {"a": 1},
    }


def test_plan_says_its_mode_unless_it_leaves_it_to_the_host() -> None:
    plan = one_step({"t": ("x",)})
    assert "mode" not in plan.to_public_dict()
    assert replace(plan, mode=STORE).to_public_dict()["mode"] == "store"
    assert replace(plan, mode=DIRECT).to_public_dict()["mode"] == "direct"


def test_mode_may_be_given_as_text_and_must_be_one() -> None:
    plan = one_step({"t": ("x",)})
    assert replace(plan, mode="store").mode is STORE  # type: ignore[arg-type]  # its text
    with refuses(ErrorCategory.VALIDATION, "extraction plan is invalid"):
        replace(plan, mode="bogus")  # type: ignore[arg-type]  # the point of the test


def test_document_of_a_stored_result_is_not_there() -> None:
    host, _ = storing_host(TWO)
    result = execute(host)
    with pytest.raises(ValueError, match="lies in a sink"):
        _ = result.document
