"""Rows that are there already, as a stream (spec 5.4, 21.12)."""

from fetcher_engine import EagerStream, RowBatch

from .loops import every_loop, run

pytestmark = every_loop


async def rest_of(stream: EagerStream) -> list[RowBatch]:
    batches = []
    while (batch := await stream.next_batch()) is not None:
        batches.append(batch)
    return batches


def rows_of(batches: list[RowBatch]) -> list[tuple[str, list[object]]]:
    return [(batch.table, [row["n"] for row in batch.rows]) for batch in batches]


def test_tables_come_in_byte_order_and_rows_as_given() -> None:
    stream = EagerStream({"b": [{"n": 1}], "a": [{"n": 2}, {"n": 3}], "é": [{"n": 0}], "Z": []})
    assert rows_of(run(rest_of(stream))) == [("a", [2, 3]), ("b", [1]), ("é", [0])]


def test_a_batch_holds_so_many_rows_of_one_table() -> None:
    stream = EagerStream({"a": [{"n": i} for i in range(5)], "b": [{"n": 5}]}, rows_per_batch=2)
    assert rows_of(run(rest_of(stream))) == [("a", [0, 1]), ("a", [2, 3]), ("a", [4]), ("b", [5])]
    many = EagerStream({"t": [{"n": i} for i in range(600)]})
    assert [len(batch.rows) for batch in run(rest_of(many))] == [256, 256, 88]


def test_order_and_rows_are_fixed_at_construction() -> None:
    rows = {"b": [{"n": 1}], "a": [{"n": 2}]}
    stream = EagerStream(rows)
    rows["0"] = [{"n": 0}]
    rows["a"].append({"n": 3})
    assert rows_of(run(rest_of(stream))) == [("a", [2]), ("b", [1])]


def test_after_the_end_there_is_nothing_again_and_again() -> None:
    stream = EagerStream({"a": [{"n": 1}]})
    assert rows_of(run(rest_of(stream))) == [("a", [1])]
    assert run(stream.next_batch()) is None
    assert run(stream.next_batch()) is None


def test_closed_stream_gives_no_row_and_may_be_closed_twice() -> None:
    stream = EagerStream({"a": [{"n": 1}, {"n": 2}]}, rows_per_batch=1)
    first = run(stream.next_batch())
    assert first is not None
    assert rows_of([first]) == [("a", [1])]
    run(stream.aclose())
    run(stream.aclose())
    assert run(stream.next_batch()) is None
