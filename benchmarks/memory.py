"""What a worker holds while jobs run, whatever the size of their results.

``python -m benchmarks.memory [--largest MB]``: for each source, one worker's jobs one after the
other, from 10 MB to the largest, as ``make faults`` does it up to 1 GB
(:mod:`tests.faults.test_result_memory`), on the servers of ``FETCHER_TEST_*``.
"""

import argparse
import json

from tests.faults.memory_figures import SIZES_MB, filled_sources, measure_sizes
from tests.faults.memory_world import memory_world
from tests.faults.own_sources import Kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES_MB[-1])
    arguments = parser.parse_args()
    sizes = [size for size in SIZES_MB if size <= arguments.largest]
    with memory_world() as world, filled_sources(world, sizes[-1]) as sources:
        for rows in sources[: len(Kind)]:
            with world.worker() as worker:
                print(json.dumps(measure_sizes(world, worker, rows, sizes).line()), flush=True)


if __name__ == "__main__":
    main()
