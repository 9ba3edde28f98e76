"""docs/performance.md, made of measured lines and of what does not change from run to run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.binding import binding_table
from benchmarks.design_table import TABLE, DesignRow
from benchmarks.machine import FIGURE
from benchmarks.reasons import reason_for
from benchmarks.tables import number, table, verdict_row
from benchmarks.verdicts import Line, Verdict, verdict_of

_HEAD: Final = """<!-- made of docs/performance.jsonl by `make performance` -->
# Performance: what is measured, and what binds

Each figure stands beside a peer that the same run measured on the same machine, in turns with it:
the machine's other work then meets both alike. **Read ratios, not rates**: rates are this
machine's. A ratio is the median of those of neighbouring runs; above 1 we are faster (for seconds
and memory: the ratio is ours by the peer's, and less is better).

How to repeat it: `make bench` measures everything in about a quarter of an hour on an idle
machine with two cores and leaves its lines in `bench-results/bench.jsonl`; `make performance`
makes this page of them. One part alone: `python -m benchmarks PART …`, parts being modules of
`benchmarks/`, which say at their heads what they do. `FETCHER_BENCH_ROWS` (1 000 000) makes it
shorter and says less. Your own servers: `FETCHER_BENCH_POSTGRES_DSN`,
`FETCHER_BENCH_MARIADB_HOST` and its companions, `FETCHER_BENCH_S3_ENDPOINT`.
"""

_WAY: Final = """## How it is measured

- **One job** is the product's own way from a connector to a sealed object in a folder: session,
  snapshot, rows, Engine, digest, HMAC, AES-GCM, base64, file. Each run is a process of its own.
  `large_rows` are 256 rows of 1 MiB.
- **Clients** (`psql`, `mysql -q`) send the same rows as JSON to nowhere, from the same server.
- **MongoDB's server only replays** recorded batches, so that what is compared is what drivers and
  we make of them; `mongodb.mixed` and its like are CPU time on batches in memory.
- **The usual way** is the driver's dictionaries, `json.dumps`, one AES-GCM ciphertext, one file,
  in a process of its own. It is easier than ours: no base64, no signature, values as `str` makes
  them, and nothing is limited.
- **Memory** is the peak that the kernel saw of the whole process; growth is above the peak before
  the job began.
- **Lateness** is how much later than due the loop of a job's process came to a task that sleeps 5
  ms at a time, at worst in all rounds; a process that only waits shows what the machine adds.
- **Creating jobs**: latency from the moment when a request was due, 100 a second for 10 s; the
  median of rounds.
"""

_FURTHER: Final = """\
Ratios are medians of those of each round, not quotients of the figures beside them. The peer of
`postgresql.sealed_to_s3` is psql as above: a job that writes into a bucket, whose test server takes
its CPU from the same two cores (no real store was measured); that of `worker.empty_jobs` is a bare
process with the calls that nobody can do without; that of `http.get_job` a bare answer of the same
framework.
"""

_PROFILE: Final = """\
One session of a server is one thread, and one process of ours runs one interpreter: on idle cores
whoever is busier of the two binds. Shares of a job's own CPU, by `perf record` of its process
without its start (samples of one run beside other work, so a guide):

| what | PostgreSQL | MongoDB |
| --- | --- | --- |
| Python: rows taken, joined, looked through; shapes and columns of documents | 52 % | 78 % |
| kernel: receiving, the file's pages, switching threads | 21 % | 11 % |
| SHA-256: the document's digest and its HMAC | 14 % | 2 % |
| copying (libc) | 7 % | 6 % |
| AES-GCM | 3 % | 1 % |
| the driver's C code, base64 | 3 % | 1 % |

MariaDB's server binds its way, with what its statement makes it do. CPU of the server's thread
for 100 000 rows, the least of nine rounds in turns: the client's query 0.225 s, ours 0.283 s,
ours without looking whether a calendar holds the dates 0.247 s. That look is needed (`0000-00-00`
and 30 February are stored by some), and six other ways to write it cost 0.273 to 0.284 s. Texts
by `JSON_QUOTE` and floats in decimal cost both sides most.

Control characters, of which JSON has none outside of escapes, are sought in all rows: 0.50 s of
CPU a GiB now, one character after the other by the C library, 0.70 (PostgreSQL) and 0.67
(MariaDB) before, by `bytes.translate`, in turns in one process.
"""

_OTHERS: Final[Mapping[str, Sequence[str]]] = {
    "encoder": ("ratio_to_json_dumps", "ratio_to_its_bytes"),
    "http.get_job": ("requests_per_second", "hello_per_second", "ratio_to_hello"),
    "worker.empty_jobs": ("jobs_per_second", "peer_per_second", "ratio_to_peer", "binds"),
    "sealing": ("cpu_seconds_per_gib",),
    "console": ("entries", "frame_ms", "frame_ms_p99", "frame_ms_at_rest"),
    "postgresql.sealed_to_s3": ("rows_per_second", "ratio_to_peer"),
    "postgresql.schema": ("rows", "seconds"),
    "mysql.schema": ("rows", "seconds"),
}
"""Further figures, by the beginning of their names, and which of their members are shown."""


def page(lines: Sequence[Line]) -> str:
    verdicts = [verdict for line in lines if (verdict := verdict_of(line)) is not None]
    figures = {str(line["figure"]): line for line in lines}
    parts = [
        _HEAD,
        "## The design's table\n",
        *(_row(row, [each for each in verdicts if each.row == row.key]) for row in TABLE),
        *_open(verdicts),
        "## What binds\n",
        f"{binding_table(figures)}\n",
        _PROFILE,
        _WAY,
        "## Further figures\n",
        _FURTHER,
        f"{_others(lines)}\n",
        "## The machine\n",
        f"{_machine(figures.get(FIGURE, {}))}\n",
    ]
    return "\n".join(parts)


def _row(row: DesignRow, verdicts: Sequence[Verdict]) -> str:
    title = f"### {row.figure}\n\nTarget: {row.target}. By `{row.measured_by}`.\n"
    proofs = ", ".join(f"`{each}`" for each in row.proof)
    if proofs:
        title += f"\nProved by {proofs}: [{row.page.removesuffix('.md')}]({row.page}).\n"
    if not verdicts:
        return title
    head = ("figure", "measured", "its peer in the same run", "ratio", "target", "holds")
    return f"{title}\n{table(head, [verdict_row(each) for each in verdicts])}\n"


def _open(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "## What does not hold\n"
    missed = [each for each in verdicts if not each.holds]
    if not missed:
        yield "Nothing in this run.\n"
    for each in missed:
        yield f"- `{each.figure}`: {reason_for(each.figure)}"
    if missed:
        yield ""


def _others(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        name = str(line["figure"])
        for beginning, members in _OTHERS.items():
            if name == beginning or name.startswith(f"{beginning}."):
                shown = [f"{member} {_shown(line[member])}" for member in members if member in line]
                rows.append((f"`{name}`", ", ".join(shown)))
    return table(("figure", ""), rows)


def _shown(value: Any) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def _machine(facts: Line) -> str:
    rows = []
    for name, value in facts.items():
        if name != "figure":
            shown = (
                ", ".join(f"{key} {each}" for key, each in value.items())
                if isinstance(value, Mapping)
                else _shown(value)
            )
            rows.append((name.replace("_", " "), shown))
    return table(("", ""), rows)
