"""A cell as large as cells may be: it comes whole, for a bounded amount of memory."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Any, Final

import pytest

from fetcher.consumer import open_result
from tests.faults.large_cells import FIELD, Content, LargeCell, fill
from tests.faults.memory_watch import MIB
from tests.faults.memory_world import MemoryWorld, memory_world
from tests.faults.own_sources import Kind, OwnSource
from tests.integration.datasources import mariadb
from tests.scale import scale_factor

MOST_GROWTH_MIB: Final = 64
"""And four times the row."""
IS_NIGHTLY: Final = scale_factor() >= 10
HIGHEST_LIMIT: Final = 64 * MIB
"""Of ``DATASOURCE_MAX_CELL_BYTES``."""
LOW_LIMIT: Final = 16 * MIB
"""The default."""
SIZES: Final = {
    Content.TEXT: 50 * MIB,
    Content.BYTES: 47 * MIB,
}
"""Bytes are just below the limit once they are base64."""
LARGEST_IN_MONGODB: Final = 16 * MIB - 64
"""A document has no more."""
LARGEST_TEXT_IN_MARIADB: Final = 40 * MIB
"""Its ``JSON_QUOTE`` gave this one, and NULL for 50 MiB, with packets of 1 GiB."""
NEVER_SENT: Final = [Kind.POSTGRESQL, Kind.MARIADB]
"""Their servers measure a cell before they send it."""

GROUPS: Final = [[kind] for kind in Kind]
"""Those of one group share a worker, which does not give back all that it held."""

pytestmark = pytest.mark.skipif(not IS_NIGHTLY, reason="a minute of memory: make faults has it")

Sources = Mapping[Kind, OwnSource]


def size_of(kind: Kind, content: Content) -> int:
    if kind is Kind.MONGODB:
        return min(SIZES[content], LARGEST_IN_MONGODB)
    if (kind, content) == (Kind.MARIADB, Content.TEXT):
        return min(SIZES[content], LARGEST_TEXT_IN_MARIADB)
    return SIZES[content]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryWorld]:
    """With a MariaDB whose packets hold such a cell: they are 16 MiB where nobody says more."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("mariadb") / "server"
        own = mariadb.running_server(folder, options=["--max-allowed-packet=1G"])
        admin = stack.enter_context(own).admin
        yield stack.enter_context(memory_world(keeps=True, mariadb=admin))


@pytest.fixture(scope="module")
def sources(world: MemoryWorld) -> Iterator[Sources]:
    with ExitStack() as stack:
        yield {kind: stack.enter_context(world.source(kind)) for kind in Kind}


@pytest.mark.parametrize("kinds", GROUPS, ids="-".join)
def test_cells_below_the_limit_come_whole(
    world: MemoryWorld, sources: Sources, kinds: Sequence[Kind]
) -> None:
    with world.worker(DATASOURCE_MAX_CELL_BYTES=str(HIGHEST_LIMIT)) as worker:
        for kind, content in product(kinds, Content):
            cell = fill(sources[kind], f"{content}_cell", content, size_of(kind, content))
            [job], memory = worker.run(cell.post_job)
            assert job["status"] == "completed", job
            before_mib = worker.idle_mib if len(kinds) == 1 else memory.samples_mib[0]
            growth_mib, row_mib = memory.peak_mib - before_mib, job["sizeBytes"] / MIB
            print(f"{kind}, {content}: row {row_mib:.1f} MiB, growth {growth_mib:.0f} MiB")
            assert digest(found_cell(world, cell, job)) == digest(cell.expected)
            assert growth_mib < MOST_GROWTH_MIB + 4 * row_mib


@pytest.mark.parametrize("kinds", GROUPS, ids="-".join)
def test_cells_above_the_limit_are_refused(
    world: MemoryWorld, sources: Sources, kinds: Sequence[Kind]
) -> None:
    with world.worker(DATASOURCE_MAX_CELL_BYTES=str(LOW_LIMIT)) as worker:
        for kind in kinds:
            size = size_of(kind, Content.BYTES)
            cell = fill(sources[kind], "refused_cell", Content.BYTES, size)
            [job], memory = worker.run(cell.post_job)
            assert job["status"] == "failed", job
            assert job["error"]["reason"] == "cell_too_large", job
            growth_mib = memory.peak_mib - worker.idle_mib
            print(f"{kind}: {size / MIB:.1f} MiB refused, growth {growth_mib:.0f} MiB")
            rows = 0 if kind in NEVER_SENT else 4
            assert growth_mib < MOST_GROWTH_MIB + rows * size / MIB


def found_cell(world: MemoryWorld, cell: LargeCell, job: Any) -> str:
    with open_result(
        world.sink.content(job["resultPath"]),
        storage_key=world.cluster.keys.storage,
        hmac_key=world.cluster.keys.external_hmac,
        expected_hmac=job["resultHmac"],
        expected_size=job["sizeBytes"],
    ) as opened:
        [row] = json.loads(opened.read())[cell.source.name][cell.table]
    return str(row[FIELD])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
