"""What became of jobs whose record store, bucket or broker failed one message, as tables."""

from collections.abc import Iterable, Sequence

from tests.faults.amqp_cases import AmqpEnding
from tests.faults.amqp_proxy import AmqpFault, Spoken
from tests.faults.broker_cases import BrokerEnding
from tests.faults.mongo_cases import MongoEnding
from tests.faults.mongo_proxy import WriteFault
from tests.faults.s3_cases import S3Ending
from tests.faults.s3_proxy import S3Fault


def marks(place: str) -> tuple[str, str]:
    """Between which its table stands."""
    return f"<!-- wire faults, {place}: written by their test -->\n", f"<!-- end of {place} -->\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    ruled = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*ruled, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def mongo_table(endings: Sequence[MongoEnding]) -> str:
    """Seconds from the request to its event, a row for each write."""
    rows: dict[tuple[str, str], dict[WriteFault, list[MongoEnding]]] = {}
    for each in endings:
        row = rows.setdefault((each.case.process, each.case.what), {})
        row.setdefault(each.case.fault, []).append(each)
    return _lines(
        ["", *WriteFault],
        (
            [f"{process}: {what}", *(_seconds(found.get(fault, [])) for fault in WriteFault)]
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


def amqp_table(endings: Sequence[AmqpEnding]) -> str:
    """Seconds from the request to its event."""
    found = {(each.case.spoken, each.case.fault): f"{each.seconds:.1f}" for each in endings}
    return _lines(
        ["", *AmqpFault],
        (
            [str(spoken), *(found.get((spoken, fault), "") for fault in AmqpFault)]
            for spoken in Spoken
        ),
    )


def broker_table(endings: Sequence[BrokerEnding]) -> str:
    """How long after it was over all had ended and was told."""
    return _lines(
        ["what the broker does", "counted", "seconds from its end to the last event"],
        ([each.fault, f"{each.felt:.0f}", f"{each.seconds:.1f}"] for each in endings),
    )
