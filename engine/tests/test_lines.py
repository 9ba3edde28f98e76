"""Lines from batches (spec 11.2)."""

import pytest

from fetcher_engine import EncodedBatch, EngineError, ErrorCategory, PlanStep, RowEncoder
from fetcher_engine.lines import LineFormat
from fetcher_engine.memory import MemoryResultSink
from fetcher_engine.result_format import ByteBudget, TableOutOfOrder
from fetcher_engine.row_pieces import JoinedRows, MalformedBatch, RowPiece

from .hosts import Host
from .loops import every_loop, run
from .plans import batches_of, one_step, run_plan
from .refusals import refuses

pytestmark = every_loop

STEP = PlanStep(ordinal=0, config_name="c", fields={"t": ("x",)})
AROUND = len('{"config":"c","table":"t","row":}\n')


def lines_of(*pieces: RowPiece, limit: int = 1_000_000, table: str = "t") -> list[bytes]:
    emitted: list[bytes] = []

    async def emit(data: bytes) -> None:
        emitted.append(data)

    async def main() -> None:
        output = LineFormat().output(STEP, ByteBudget(limit=limit, skeleton=0), emit)
        for piece in pieces:
            await output.put(table, piece)
        await output.finish()

    run(main())
    return emitted


def test_rows_of_either_form_are_the_same_lines() -> None:
    rows: list[dict[str, object]] = [{"x": [{"a": 1}, {"a": "},{"}]}, {"x": None}] * 200
    pieces = list(RowEncoder(source="s", table="t").pieces(rows))
    lines = lines_of(*pieces)
    assert lines_of(*[JoinedRows(piece.joined(), piece.row_count) for piece in pieces]) == lines
    assert [data.count(b"\n") for data in lines] == [256, 144]
    assert lines[1].splitlines()[-1] == b'{"config":"c","table":"t","row":{"x":null}}'


def test_no_rows_are_no_write() -> None:
    assert lines_of() == []


@pytest.mark.parametrize("form", ["joined", "apart"])
def test_each_line_counts_with_all_that_stands_around_its_row(form: str) -> None:
    [piece] = RowEncoder(source="s", table="t").pieces([{"x": 1}, {"x": 2}])
    if form == "joined":
        piece = JoinedRows(piece.joined(), piece.row_count)
    size = 2 * (AROUND + len('{"x":1}'))
    assert sum(map(len, lines_of(piece, limit=size))) == size
    with pytest.raises(EngineError) as caught:
        lines_of(piece, limit=size - 1)
    assert caught.value.category is ErrorCategory.LIMIT_EXCEEDED


def test_table_that_was_not_asked_for_is_told() -> None:
    with pytest.raises(TableOutOfOrder):
        lines_of(JoinedRows(b"{}", 1), table="u")


def test_rows_that_are_none_are_told() -> None:
    with pytest.raises(MalformedBatch):
        lines_of(JoinedRows(b"{},{}", 1))


@pytest.mark.parametrize(
    ("data", "count"),
    [(b'{"x":1},{"x":2}', 1), (b'{"x":\n1}', 1), (b'[{"x":1}]', 1), (b'{"x":"},{"}, ', 2)],
)
def test_stored_batch_that_would_break_the_lines_is_a_contained_crash(
    data: bytes, count: int
) -> None:
    sink = MemoryResultSink()
    host = Host({"a": batches_of(EncodedBatch("t", data, count))}, options={"result_sink": sink})
    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly") as caught:
        run_plan(host, one_step({"t": ("x",)}))
    assert (caught.value.source, caught.value.reason) == ("a", "malformed_batch")
    assert (sink.close_count, sink.abort_count) == (0, 1)
