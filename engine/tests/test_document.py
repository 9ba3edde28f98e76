"""What stands around the rows (design section 5)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher_engine import PlanStep
from fetcher_engine.document import StepFrame, frames_of, skeleton_bytes
from fetcher_engine.result_format import TableOutOfOrder

from .hosts import direct_of, host_of
from .loops import every_loop, run

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


def a_step(*tables: str, ordinal: int = 0, name: str = "c") -> PlanStep:
    return PlanStep(ordinal=ordinal, config_name=name, fields=dict.fromkeys(tables, ("x",)))


def test_frame_opens_each_table_and_separates_its_batches() -> None:
    frame = StepFrame(a_step("t", "u"), is_last=True)
    assert frame.before_rows("t") == b'{"c":{"t":['
    assert frame.before_rows("t") == b","
    assert frame.before_rows("u") == b'],"u":['
    assert frame.finish() == b"]}}"


def test_later_step_starts_with_a_comma_and_does_not_end_the_document() -> None:
    frame = StepFrame(a_step("t", ordinal=1), is_last=False)
    assert frame.finish() == b',"c":{"t":[]}'


@pytest.mark.parametrize("order", ["ut", "tx", "tut", "v"])
def test_table_out_of_its_turn_is_told(order: str) -> None:
    frame = StepFrame(a_step("t", "u"), is_last=True)
    with pytest.raises(TableOutOfOrder):
        list(map(frame.before_rows, order))


@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=5, unique=True), max_size=5))
def test_skeleton_is_the_document_without_rows(tables: dict[str, list[str]]) -> None:
    steps = [a_step(*tables[name], ordinal=i, name=name) for i, name in enumerate(sorted(tables))]
    empty = b"".join(frame.finish() for frame in frames_of(steps)) or b"{}"
    assert json.loads(empty) == {name: {t: [] for t in tables[name]} for name in tables}
    assert skeleton_bytes(steps) == len(empty)


@every_loop
def test_names_are_escaped() -> None:
    host = host_of({'c"\n': {"t<\\": [{"x%": 1}]}})

    async def main() -> bytes:
        return direct_of(await host.engine.execute_extraction(await host.plan_all())).data

    assert run(main()) == b'{"c\\"\\n":{"t<\\\\":[{"x%":1}]}}'
