"""Four sources behind a slow network, beside the slowest of them alone (design section 12).

``python -m benchmarks.slowed [--rounds N]``. Each source is PostgreSQL behind a proxy that lets a
batch of 1 MiB through every 200 ms. Sources that were read one after the other would take four
times as long as one. It takes 20 s a round, and prints at the end.
"""

import argparse
import json
import statistics
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from benchmarks.heartbeat import with_heartbeat
from benchmarks.postgresql_tables import prepare
from benchmarks.sizes import TABLE
from benchmarks.slow_proxy import slow_proxy
from benchmarks.source_measures import TENANT, settings
from benchmarks.sources import bench_source
from fetcher.adapters.local.spool import FolderSpool
from fetcher.datasources.engines import open_source_engines
from fetcher.domain.connections import Connection
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import ExtractionRequest

SOURCES: Final = 4
ROWS: Final = 60_000
"""Of each source: about 16 batches."""
FIELDS: Final = ("created", "doc", "id", "name", "uid")


async def seconds_for(connections: list[Connection]) -> tuple[float, float]:
    """How long one job on these sources takes, and how late its process's loop was."""
    tables = {each.config_name: {TABLE: FIELDS} for each in connections}
    filters = {each.config_name: {TABLE: {"id": {"lte": [ROWS]}}} for each in connections}

    async def write(chunk: bytes | memoryview) -> None:
        del chunk

    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fetcher-bench-"))
        spool = FolderSpool(Path(folder))
        engines = await stack.enter_async_context(open_source_engines(settings(), spool=spool))
        engine = engines.engine_for(connections, JobOptions(), tables)
        request = ExtractionRequest(mapped_fields=tables, filters=filters)
        plan = await engine.plan_extraction(TENANT, request)
        started = trio.current_time()

        async def run() -> int:
            return (await engine.stream_extraction(plan, write)).row_count

        rows, late = await with_heartbeat(run)
        assert rows == ROWS * len(connections)
        return trio.current_time() - started, late


async def measure() -> tuple[list[float], float, float]:
    """Seconds of each source alone and of all at once, and the lateness of the loop with all."""
    source = bench_source("postgresql").connection
    async with AsyncExitStack() as stack:
        connections = []
        for number in range(SOURCES):
            port = await stack.enter_async_context(slow_proxy())
            each = replace(source, id=new_connection_id(), config_name=f"src{number}")
            connections.append(replace(each, host="127.0.0.1", port=port))
        alone = [(await seconds_for([each]))[0] for each in connections]
        together, late = await seconds_for(connections)
    return alone, together, late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments, _ = parser.parse_known_args()
    prepare()
    runs = [trio.run(measure) for _ in range(arguments.rounds)]
    ratios = [together / max(alone) for alone, together, _ in runs]
    figure = {
        "figure": "slowed.four_sources",
        "slowest_alone_seconds": [round(max(alone), 2) for alone, _, _ in runs],
        "together_seconds": [round(together, 2) for _, together, _ in runs],
        "ratio_to_slowest": round(statistics.median(ratios), 2),
        "all_ratios": [round(ratio, 2) for ratio in ratios],
        "loop_late_ms": [round(late, 1) for _, _, late in runs],
    }
    print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
