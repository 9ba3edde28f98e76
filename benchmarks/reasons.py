"""Why a figure misses its target, as far as that is known: by the beginning of its name."""

from collections.abc import Mapping
from typing import Final

_BESIDE: Final = "the run met other work, see the load under [the machine](#the-machine)"

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
    "mongodb": f"{_BESIDE}.",
    "create_job.mongodb": (
        "the test server reads every record for a count and looks through all indexes at each "
        "record that changes: nearly all of the time is its own ([045](decisions/045-fewer-"
        "calls-of-the-record-store.md))."
    ),
    "create_job": (
        f"{_BESIDE}: each request waits behind those before it. [Scale](scale.md) has what the same"
        " command gave on a machine that kept up."
    ),
    "lateness": (
        f"{_BESIDE}. What a process that only waits shows beside it is the machine's part alone;"
        " how much of the rest is ours this run does not tell."
    ),
    "mariadb": (
        f"{_BESIDE}. On idle cores the server binds, with what its statement renders:"
        " [024](decisions/024-mysql-driver-is-pymysql.md) has its seconds of CPU by parts of the"
        " statement."
    ),
    "postgresql": (
        f"server and job want a core each, and {_BESIDE}. [Scale](scale.md) has the ratios of other"
        " runs of this command."
    ),
    "slowed": f"the four sources share one interpreter, and {_BESIDE}.",
    "usual.memory": (
        "the usual way takes more with every row, a job does not: the target is meant for a million"
        " rows, and this was measured with fewer."
    ),
    "usual": f"the usual way needs one core, a job and its server two, and {_BESIDE}.",
    "memory": "see [reliability](reliability.md).",
}


def reason_for(figure: str) -> str:
    """By the longest beginning that is known; raise ValueError for none."""
    known = [name for name in REASONS if figure == name or figure.startswith(f"{name}.")]
    return REASONS[max(known, key=len)]
