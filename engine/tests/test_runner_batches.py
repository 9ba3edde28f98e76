"""What a stream may deliver (spec 19.5, design section 5)."""

from typing import Any

import pytest

from fetcher_engine import EncodedBatch, ErrorCategory, RowBatch

from .hosts import Host, direct_of
from .loops import every_loop, run
from .plans import batches_of, one_step, run_plan
from .refusals import refuses

pytestmark = every_loop


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
    run(host.engine.stream_extraction(one_step({"t": ("x",)}), write))
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
