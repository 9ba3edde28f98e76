"""The design's table of figures (design section 12), and where each row's verdicts come from."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignRow:
    """``measured_by`` is a command; ``proof`` the tests of one that is more than speed, ``page``
    that which tells of them."""

    key: str
    figure: str
    target: str
    measured_by: str
    proof: tuple[str, ...] = ()
    page: str = "reliability.md"


TABLE: Final = (
    DesignRow(
        key="postgresql",
        figure="PostgreSQL → sealed object, one job, 1 M rows × 10 mixed columns",
        target="≥ 1.0 × `psql \\copy (select row_to_json(t) …)` on the same table in the same run",
        measured_by="python -m benchmarks.postgresql",
    ),
    DesignRow(
        key="mariadb",
        figure="MariaDB → sealed object, the same",
        target="≥ 250 000 rows/s and ≥ 0.8 × the `mysql -q` client with the same JSON query",
        measured_by="python -m benchmarks.mysql",
    ),
    DesignRow(
        key="mongodb",
        figure="MongoDB, same documents from a recorded stream of raw batches",
        target="≥ 0.9 × `bson.decode_all` of the same batches",
        measured_by="python -m benchmarks.mongodb",
    ),
    DesignRow(
        key="usual",
        figure="against the usual Python way (driver dicts → json → encrypt → put)",
        target="≥ 3 × rows/s, ≤ 1/10 peak memory",
        measured_by="python -m benchmarks.postgresql, .mysql, .mongodb_job",
    ),
    DesignRow(
        key="memory",
        figure="peak RSS growth",
        target="< 64 MiB + 4 × the largest row a job, flat within 10 % from 10 MB to 1 GB",
        measured_by="python -m benchmarks.memory, .postgresql, .mysql, .mongodb_job",
        proof=("tests/faults/test_result_memory.py",),
    ),
    DesignRow(
        key="slowed",
        figure="4 sources, each slowed to 200 ms a batch by a proxy",
        target="≤ 1.3 × the slowest alone",
        measured_by="python -m benchmarks.slowed",
    ),
    DesignRow(
        key="lateness",
        figure="lateness of the process's heartbeat while jobs run",
        target="< 50 ms for rows up to 1 MiB",
        measured_by="python -m benchmarks.postgresql, .mysql, .mongodb_job",
    ),
    DesignRow(
        key="create_job",
        figure="create-job p99 at 100 requests/s, preflight off",
        target="< 50 ms on SQLite and on the MongoDB-compatible server",
        measured_by="python -m benchmarks.http_api",
    ),
    DesignRow(
        key="faults",
        figure="faults",
        target="1 000 jobs under every fault kind on every link: 0 lost, 0 stuck, 0 partial"
        " objects, every event delivered, distinct `ce-id`s = jobs",
        measured_by="make faults",
        proof=("tests/faults/test_fault_matrix.py",),
    ),
    DesignRow(
        key="kills",
        figure="kill -9 at every step",
        target="claimed again within lease + 30 s, then terminal",
        measured_by="make faults",
        proof=(
            "tests/faults/test_steps.py",
            "tests/faults/test_kills.py",
            "tests/faults/test_killed_around_the_record.py",
        ),
    ),
    DesignRow(
        key="secrets",
        figure="secrets",
        target="a canary password in every field, 0 hits in logs, events, bodies, DLQ headers,"
        " traces",
        measured_by="make test",
        proof=(
            "tests/canaries/test_embedded_canaries.py",
            "tests/canaries/test_service_canaries.py",
            "tests/canaries/test_spelling.py",
        ),
        page="security.md",
    ),
)
