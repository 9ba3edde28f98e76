"""PostgreSQL to a sealed object, beside psql on the same table in the same run (design section 12).

``python -m benchmarks.postgresql [--rounds N]``. The server is ``FETCHER_BENCH_POSTGRES_DSN``
(loopback by default); with ``FETCHER_BENCH_S3_ENDPOINT`` the whole way is also measured to S3.
``usual`` is measured once (:mod:`benchmarks.usual`).
"""

import os
import subprocess
import sys
from functools import partial
from typing import Final

from benchmarks.cpu_time import listener
from benchmarks.postgresql_tables import COLUMNS, conninfo, prepare, server
from benchmarks.sizes import TABLE
from benchmarks.source_rounds import Run, SourceRounds, in_turns, rounds_of

PEER: Final = "psql_row_to_json"


def main() -> None:
    count = rounds_of(__doc__)
    prepare()
    rounds = SourceRounds("postgresql", server_pid=listener(int(server()["port"])))
    columns = ", ".join(COLUMNS)
    copy = f"\\copy (select row_to_json(t) from (select {columns} from {TABLE}) t) to '/dev/null'"
    psql = ["psql", conninfo(), "-X", "-q", "-c", copy]
    names = ["connector", "sealed_to_folder", "large_rows", "schema"]
    if os.environ.get("FETCHER_BENCH_S3_ENDPOINT"):
        # In a process of its own: what this one holds counts into the peak of those it starts.
        subprocess.run([sys.executable, "-m", "benchmarks.bucket"], check=True, timeout=60)
        names.append("sealed_to_s3")
    measured: dict[str, Run] = {
        PEER: partial(rounds.watched, partial(rounds.client, psql)),
        **{name: partial(rounds.watched, partial(rounds.ours, name)) for name in names},
        "idle": partial(rounds.ours, "idle"),
    }
    runs = in_turns(measured, count, few={*measured} - {PEER, "sealed_to_folder"})
    runs["usual"] = [rounds.usual()]
    rounds.report(runs, PEER)


if __name__ == "__main__":
    main()
