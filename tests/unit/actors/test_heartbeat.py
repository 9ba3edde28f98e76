"""A process that is held up shows by how much."""

import trio
import trio.testing

from fetcher.actors.heartbeat import BEAT_SECONDS, Heartbeat
from tests.unit.actors.bench import Bench

LATENESS = "fetcher_heartbeat_lateness_seconds"


async def test_each_beat_tells_how_late_it_is(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Heartbeat(metrics=bench.metrics).run)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(BEAT_SECONDS)
        await trio.testing.wait_all_tasks_blocked()
        assert bench.counted(f"{LATENESS}_count") == 1
        assert bench.counted(f"{LATENESS}_sum") == 0
        # as if a call had held the only thread
        mock_clock.jump(BEAT_SECONDS + 0.3)
        await trio.testing.wait_all_tasks_blocked()
        assert bench.counted(f"{LATENESS}_count") == 2
        assert 0.299 < (bench.counted(f"{LATENESS}_sum") or 0) < 0.301
        assert bench.counted(f"{LATENESS}_bucket", le="0.25") == 1
        assert bench.counted(f"{LATENESS}_bucket", le="0.5") == 2
        nursery.cancel_scope.cancel()
