"""`fetcher dlq list|show|redrive|purge`: what nobody could work on."""

import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import trio
from rich.console import Console
from rich.table import Table

from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.dead_letters import (
    DEAD_LETTER_FAILURES,
    find_letter,
    list_letters,
    purge_letters,
    redrive_letters,
)
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS
from fetcher.commands.dead_letters import Choice, Examined, Redriven
from fetcher.domain.ids import JobId
from fetcher.domain.timestamps import rfc3339
from fetcher.settings import Settings

T = TypeVar("T")

MAX_SHOWN_BYTES = 64 * 1024
MAX_SHOWN_DEPTH = 20
SKIPPED = {
    Redriven.UNKNOWN: "no job has this id",
    Redriven.ENDED: "the job has ended: `fetcher jobs rerun` makes a new one",
    Redriven.IN_HAND: "a worker has it in hand",
    Redriven.WAITS: "the job is parked or being cancelled, and goes on by itself",
    Redriven.HELD_BACK: "the breaker of one of its connections is open: mend the connection first",
    Redriven.UNVERIFIED: "not genuine or not readable: it can only be shown or purged",
    Redriven.UNREADABLE: "the job's record cannot be read",
}


def attempt(command: Callable[[], Awaitable[T]]) -> T | None:
    """The command's result; None after its failure was told."""
    try:
        return trio.run(in_room, DEAD_LETTER_FAILURES, command)
    except DEAD_LETTER_FAILURES as failed:
        print(f"dlq: {failed}", file=sys.stderr)
        return None


def run_list(settings: Settings, choice: Choice, console: Console, *, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []

    def tell(each: Examined) -> None:
        rows.append(summary(each))

    total = attempt(partial(list_letters, settings, choice, tell))
    if total is None:
        return EXIT_FAILED
    if as_json:
        print(json.dumps({"total": total, "letters": rows}, ensure_ascii=False, indent=2))
        return 0
    table = Table(title=f"Dead letters: {len(rows)} of {total}", title_justify="left")
    for column in ("position", "reason", "job", "genuine", "sent", "bytes"):
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = (row["position"], row["reason"] or "-", row["jobId"] or "-")
        genuine = "yes" if row["genuine"] else "no"
        # Strangers write into this queue: nothing of theirs is markup or moves the cursor.
        shown = (*cells, genuine, row["sentAt"] or "-", row["bytes"])
        table.add_row(*(plain(str(cell)).replace("[", "\\[") for cell in shown))
    console.print(table)
    return 0


def run_show(settings: Settings, which: str, console: Console, *, as_json: bool) -> int:
    """``which``: the position in the list, or a job's id."""
    wanted = wanted_letter(which)
    if wanted is None:
        print(f"dlq: {which}: neither a position from 1 nor a job's id", file=sys.stderr)
        return EXIT_SETTINGS
    found: list[Examined | None] = []

    async def find() -> bool:
        found.append(await find_letter(settings, wanted))
        return True

    if attempt(find) is None:
        return EXIT_FAILED
    each = found[0]
    if each is None:
        print(f"dlq: {which}: no such dead letter", file=sys.stderr)
        return EXIT_FAILED
    letter = each.letter
    document = {
        **summary(each),
        "exchange": letter.exchange,
        "routingKey": letter.routing_key,
        "headers": {name: header_text(value) for name, value in letter.headers.items()},
        "body": letter.body[:MAX_SHOWN_BYTES].decode("utf-8", "replace"),
        "bodyIsCut": len(letter.body) > MAX_SHOWN_BYTES,
    }
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
        return 0
    for name, value in document.items():
        text = plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        console.print(f"{name}: {text}", markup=False, highlight=False)
    return 0


def run_redrive(settings: Settings, choice: Choice, *, jobs_a_second: float, as_json: bool) -> int:
    """0: each of them was dispatched anew; 1: some were skipped, or it broke off."""
    results: Counter[Redriven] = Counter()
    skipped: list[dict[str, Any]] = []

    def tell(each: Examined, result: Redriven) -> None:
        results[result] += 1
        if result is not Redriven.DISPATCHED:
            job_id = str(each.job_id) if each.job_id is not None else None
            skipped.append({"position": each.position, "jobId": job_id, "why": result.value})

    async def redrive() -> bool:
        await redrive_letters(settings, choice, jobs_a_second=jobs_a_second, tell=tell)
        return True

    is_whole = attempt(redrive) is not None
    if as_json:
        counts = {result.value: count for result, count in sorted(results.items())}
        print(json.dumps({"results": counts, "skipped": skipped}, indent=2))
    else:
        for each in sorted(skipped, key=lambda one: int(one["position"])):
            why = SKIPPED[Redriven(each["why"])]
            print(f"{each['position']}: {each['jobId'] or '-'}: skipped: {why}")
        print(f"{results[Redriven.DISPATCHED]} dispatched anew, {len(skipped)} skipped")
    return 0 if is_whole and not skipped else EXIT_FAILED


def run_purge(settings: Settings, choice: Choice, *, is_sure: bool, as_json: bool) -> int:
    if not is_sure:
        print("dlq: purge throws letters away for good: say --yes", file=sys.stderr)
        return EXIT_SETTINGS
    purged = attempt(partial(purge_letters, settings, choice))
    if purged is None:
        return EXIT_FAILED
    print(json.dumps({"purged": purged}) if as_json else f"{purged} purged")
    return 0


def summary(each: Examined) -> dict[str, Any]:
    """Without the body: a list may be of thousands."""
    return {
        "position": each.position,
        "reason": each.letter.reason,
        "jobId": str(each.job_id) if each.job_id is not None else None,
        "genuine": each.is_genuine,
        "sentAt": rfc3339(each.sent_at) if each.sent_at is not None else None,
        "bytes": len(each.letter.body),
    }


def wanted_letter(which: str) -> int | JobId | None:
    if which.isascii() and which.isdigit() and 0 < len(which) < 10:
        return int(which) or None
    try:
        return JobId(UUID(which))
    except ValueError:
        return None


def header_text(value: object, *, depth: int = 0) -> object:
    """Any header as JSON; what a stranger nests deeper than 20 tables is cut off."""
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping | list) and depth >= MAX_SHOWN_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {str(name): header_text(each, depth=depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [header_text(each, depth=depth + 1) for each in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def plain(text: str) -> str:
    """For a terminal: control characters become visible."""
    return "".join(
        each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text
    )
