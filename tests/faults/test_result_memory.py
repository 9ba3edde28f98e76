"""A worker's memory does not follow the size of its results (design section 12).

``FETCHER_TEST_FAULTS_DOCUMENT`` names the page that the table is written into, at nightly size.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.faults.matrix_outcome import write_into
from tests.faults.memory_figures import (
    AT_ONCE_MB,
    SIZES_MB,
    AtOnceMeasured,
    SizesMeasured,
    filled_sources,
    measure_at_once,
    measure_sizes,
)
from tests.faults.memory_table import BEGIN, END, table
from tests.faults.memory_watch import MIB
from tests.faults.memory_world import MemoryWorld, memory_world
from tests.faults.own_sources import Kind
from tests.faults.sized_rows import SizedRows
from tests.scale import scale_factor

MOST_GROWTH_MIB: Final = 64
"""And four times the largest row, for each job."""
MOST_RATIO: Final = 1.1
IS_NIGHTLY: Final = scale_factor() >= 10
SIZES: Final = SIZES_MB if IS_NIGHTLY else SIZES_MB[:2]
"""Whole in memory the second is already more than the limit, once read and once sealed."""
GROUPS: Final = [[kind] for kind in Kind] if IS_NIGHTLY else [[Kind.POSTGRESQL]]
"""Those of one group share a worker."""

Figures = list[SizesMeasured | AtOnceMeasured]


@pytest.fixture(scope="module")
def world() -> Iterator[MemoryWorld]:
    with memory_world() as opened:
        yield opened


@pytest.fixture(scope="module")
def sources(world: MemoryWorld) -> Iterator[list[SizedRows]]:
    with filled_sources(world, SIZES[-1]) as filled:
        yield filled


@pytest.fixture(scope="module")
def measured() -> Iterator[Figures]:
    figures: Figures = []
    yield figures
    for figure in figures:
        print(json.dumps(figure.line()))
    if IS_NIGHTLY and (document := os.environ.get("FETCHER_TEST_FAULTS_DOCUMENT")):
        write_into(Path(document), table(figures), begin=BEGIN, end=END)


@pytest.mark.parametrize("kinds", GROUPS, ids="-".join)
def test_peak_memory_is_flat_whatever_the_size_of_the_result(
    world: MemoryWorld, sources: Sequence[SizedRows], measured: Figures, kinds: Sequence[Kind]
) -> None:
    with world.worker() as worker:
        for rows in sources[: len(Kind)]:
            if rows.source.kind in kinds:
                figure = measure_sizes(world, worker, rows, SIZES)
                measured.append(figure)
                assert figure.growth_mib < MOST_GROWTH_MIB + 4 * figure.row_bytes / MIB, figure
                assert figure.ratio < MOST_RATIO, figure


@pytest.mark.skipif(not IS_NIGHTLY, reason="make faults has it")
def test_jobs_at_once_take_no_more_than_each_may(
    world: MemoryWorld, sources: Sequence[SizedRows], measured: Figures
) -> None:
    with world.worker() as worker:
        figure = measure_at_once(world, worker, sources, AT_ONCE_MB if IS_NIGHTLY else 12)
    measured.append(figure)
    assert figure.growth_mib < figure.jobs * MOST_GROWTH_MIB, figure


def test_the_table_has_a_line_for_each_source() -> None:
    peaks = {10: 170.2, 1000: 175.4}
    sizes = SizesMeasured(kind=Kind.SQLITE, idle_mib=156.6, peaks_mib=peaks, row_bytes=1000)
    at_once = AtOnceMeasured(jobs=5, megabytes=200, idle_mib=157.0, peak_mib=240.4)
    assert table([sizes, at_once]).splitlines() == [
        "Peak in MiB, by the size of the result:",
        "",
        "| source | idle | 10 MB | 1000 MB | growth | flat within |",
        "|---|---|---|---|---|---|",
        "| sqlite | 157 | 170 | 175 | 19 | 3 % |",
        "",
        "5 jobs of 200 MB at once: 240 MiB, 83 above idle.",
    ]
    assert sizes.line()["ratio_to_smallest"] == 1.031
    page = Path(__file__).parents[2] / "docs" / "reliability.md"
    assert BEGIN in page.read_text(encoding="utf-8").partition(END)[0]
