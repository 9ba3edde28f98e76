"""What became of jobs whose record store, bucket or broker failed one message, as tables."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from tests.faults.broker_cases import BrokerEnding
from tests.faults.mongo_cases import MongoEnding
from tests.faults.mongo_proxy import WriteFault
from tests.faults.s3_cases import S3Ending
from tests.faults.s3_proxy import S3Fault

PLACES: Final = ("mongodb", "s3", "broker")


def marks(place: str) -> tuple[str, str]:
    """Between which its table stands."""
    return f"<!-- wire faults, {place}: written by their test -->\n", f"<!-- end of {place} -->\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    ruled = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*ruled, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def mongo_table(endings: Sequence[MongoEnding]) -> str:
    """Seconds from the request to its event, a row for each write."""
    repeats = sorted({each.repeats for each in endings}, reverse=True)
    kinds = list(product(WriteFault, repeats))
    named = {True: "", False: ", not repeated"}
    rows: dict[tuple[str, str], dict[tuple[WriteFault, bool], list[MongoEnding]]] = {}
    for each in endings:
        row = rows.setdefault((each.case.process, each.what), {})
        row.setdefault((each.case.fault, each.repeats), []).append(each)
    return _lines(
        ["", *(f"{fault}{named[again]}" for fault, again in kinds)],
        (
            [f"{process}: {what}", *(_seconds(found.get(kind, [])) for kind in kinds)]
            for (process, what), found in rows.items()
        ),
    )


def _seconds(endings: Sequence[MongoEnding]) -> str:
    """The longest, and what its caller was told first where that was a failure."""
    if not endings:
        return ""
    worst = max(endings, key=lambda each: each.seconds)
    refused = f" ({worst.statuses[0]})" if worst.statuses[0] >= 500 else ""
    return f"{worst.seconds:.1f}{refused}"


def s3_table(endings: Sequence[S3Ending]) -> str:
    """Seconds until the job had completed, or what it failed with; a column for each request."""
    columns = list(dict.fromkeys(each.case.what for each in endings))
    rows: dict[str, dict[str, str]] = {each.value: {} for each in S3Fault}
    for each in endings:
        is_failed = each.outcome != "completed"
        text = f"{each.seconds:.1f}" + (f" (`{each.outcome}`)" if is_failed else "")
        rows.setdefault(each.case.met, {})[each.case.what] = text
    return _lines(
        ["", *columns],
        ([met, *(found.get(what, "") for what in columns)] for met, found in rows.items()),
    )


def broker_table(endings: Sequence[BrokerEnding]) -> str:
    """How long after it was over all had ended and was told."""
    return _lines(
        ["what the broker does", "counted", "seconds from its end to the last event"],
        ([each.fault, f"{each.felt:.0f}", f"{each.seconds:.1f}"] for each in endings),
    )
