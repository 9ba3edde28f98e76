"""Why a figure misses its target, as far as that is known: by the beginning of its name."""

from collections.abc import Mapping
from typing import Final

_UNKNOWN: Final = (
    "not known from this run. The load that it met stands under [the machine](#the-machine),"
    " figures of other runs in [scale](scale.md)."
)

REASONS: Final[Mapping[str, str]] = {
    "mongodb.sparse": (
        "each field is missing in a fifth of the documents, so that hundreds of shapes meet: "
        "each needs a pattern of its own, and what is written by shapes is put back in order. "
        "The design's row speaks of the mixed columns."
    ),
    "mongodb.shapeless": (
        "no two documents have a field in common, so that no pattern serves twice, and each is "
        "walked value by value in Python. Kept as the worst case."
    ),
    "mongodb.orders": (
        "arrays of documents of changing length: each length is a pattern of its own."
    ),
    "mongodb": _UNKNOWN,
    "create_job.mongodb": (
        "the test server reads every record for a count and looks through all indexes at each "
        "record that changes: nearly all of the time is its own ([045](decisions/045-fewer-"
        "calls-of-the-record-store.md)). What a real MongoDB makes of it is not known."
    ),
    "create_job.sqlite": (
        "one process takes the requests, stores them and runs jobs, on one core: look at"
        " `http.get_job.sqlite` for how many bare requests a second that core answers. Where it was"
        " 2 000 and more, p99 was 5 to 12 ms; where it was 700 to 1 000, requests came in faster"
        " than they went whenever the jobs or the machine had something else to do (half of them"
        " took 7 ms all the same)."
    ),
    "create_job": _UNKNOWN,
    "lateness": (
        f"{_UNKNOWN} What a process that only waits shows beside it is the machine's part alone."
    ),
    "mariadb.rows_per_second": (
        "a rate is the machine's as well: look first at what its own client reaches beside it."
        " Where that is some 360 000 rows a second, a job had 308 000"
        " ([024](decisions/024-mysql-driver-is-pymysql.md))."
    ),
    "mariadb.beside_mysql": (
        "the server binds: one session is one core, of which our statement takes a sixth more than"
        ' the client\'s while a job runs on the other core (below, "CPU, server"), for dates of no'
        " calendar and texts that hold anything. The connector alone has 0.9. Other runs of a job"
        " had 0.85, single pairs 0.72 to 0.97 ([024](decisions/024-mysql-driver-is-pymysql.md))."
    ),
    "mariadb": _UNKNOWN,
    "postgresql": f"server and job want a core each. Else {_UNKNOWN}",
    "slowed": f"the four sources share one interpreter. Else {_UNKNOWN}",
    "usual.memory": (
        "the usual way takes more with every row, a job does not: the target is meant for a million"
        " rows; look at how many were measured."
    ),
    "usual": f"the usual way needs one core, a job and its server two. Else {_UNKNOWN}",
    "memory": "see [reliability](reliability.md).",
}


def reason_for(figure: str) -> str:
    """By the longest beginning that is known; raise ValueError for none."""
    known = [name for name in REASONS if figure == name or figure.startswith(f"{name}.")]
    return REASONS[max(known, key=len)]
