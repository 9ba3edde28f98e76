"""A source that sends faster than the bucket takes: it is held back, and nothing piles up."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import psycopg
import pytest

from tests.faults.faults import Direction, Fault
from tests.faults.faults import Kind as FaultKind
from tests.faults.memory_figures import check_stored
from tests.faults.memory_world import MemoryWorld, WatchedWorker, memory_world
from tests.faults.own_sources import Kind, OwnSource
from tests.faults.proxy_thread import threaded_proxy
from tests.faults.sized_rows import fill
from tests.integration.datasources import mariadb
from tests.scale import scale_factor
from tests.servers.waiting import eventually_sync

MOST_GROWTH_MIB: Final = 64
BYTES_A_SECOND: Final = 1500 * 1000
"""Of each of the connections by which parts are sent side by side."""
IS_NIGHTLY: Final = scale_factor() >= 10
RESULT_MB: Final = 100
"""More than what waits on its way: parts that are being sent, and 4 MiB of rows."""
WAITING_SECONDS: Final = 60.0


@pytest.fixture
def world() -> Iterator[MemoryWorld]:
    with memory_world() as opened:
        yield opened


def postgresql_waits(source: OwnSource) -> bool:
    """Whether a session waits until somebody takes its rows."""
    with psycopg.connect(source.sql.conninfo, autocommit=True) as session:
        found = session.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event = 'ClientWrite'"
        ).fetchone()
    return found == (1,)


def mariadb_waits(source: OwnSource) -> bool:
    found = mariadb.rows_in(
        source.sql,
        "SELECT count(*) FROM information_schema.processlist"
        f" WHERE db = '{source.sql.database}' AND state = 'Writing to net'",
    )
    return tuple(found) == ((1,),)


WAITS: Final[Mapping[Kind, Callable[[OwnSource], bool]]] = {
    Kind.POSTGRESQL: postgresql_waits,
    Kind.MARIADB: mariadb_waits,
}


@pytest.mark.skipif(not IS_NIGHTLY, reason="half a minute of waiting: make faults has it")
def test_a_source_is_held_back_by_a_slow_bucket(world: MemoryWorld) -> None:
    slow = Fault(kind=FaultKind.BANDWIDTH, direction=Direction.UP, bytes_per_second=BYTES_A_SECOND)
    with threaded_proxy("127.0.0.1", world.sink.port) as proxy:
        proxy.turn(slow)
        endpoint = world.sink.access_through(proxy.port).endpoint
        with world.worker(OBJECT_STORAGE_ENDPOINT=endpoint) as worker:
            for kind, waits in WAITS.items():
                check_held_back(world, worker, kind, waits)


def check_held_back(
    world: MemoryWorld, worker: WatchedWorker, kind: Kind, waits: Callable[[OwnSource], bool]
) -> None:
    with world.source(kind) as source:
        rows = fill(source, RESULT_MB)

        def is_held_back() -> None:
            eventually_sync(partial(waits, source), deadline_seconds=WAITING_SECONDS)

        [job], memory = worker.run(
            partial(rows.post_job, megabytes=RESULT_MB), meanwhile=is_held_back
        )
    check_stored(world, job, RESULT_MB)
    growth_mib = memory.peak_mib - worker.idle_mib
    print(f"{kind}: growth {growth_mib:.0f} MiB")
    assert growth_mib < MOST_GROWTH_MIB
