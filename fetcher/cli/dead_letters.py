"""`fetcher dlq list|show|export|redrive|purge`: what nobody could work on."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import trio
from rich.console import Console

from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.dead_letters import (
    DEAD_LETTER_FAILURES,
    find_letter,
    list_letters,
    purge_letters,
    redrive_letters,
)
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS, done_all_the_same, telling_what_was_done
from fetcher.cli.letter_file import NotSaved, SavedLetters, read_saved, summary
from fetcher.cli.printing import add_row, complain, listing, print_json, print_plain, say
from fetcher.commands.dead_letters import Choice, Examined, Redriven
from fetcher.domain.ids import JobId
from fetcher.domain.saved_letters import header_json

T = TypeVar("T")

_FAILURES = (*DEAD_LETTER_FAILURES, NotSaved)
MAX_SHOWN_BYTES = 64 * 1024
SKIPPED = {
    Redriven.UNKNOWN: "no job has this id",
    Redriven.ENDED: "the job has ended: POST /v1/fetcher/{id}/rerun makes a new one",
    Redriven.IN_HAND: "a worker has it in hand",
    Redriven.WAITS: "the job is parked or being cancelled, and goes on by itself",
    Redriven.HELD_BACK: "the breaker of one of its connections is open: mend the connection first",
    Redriven.UNVERIFIED: "not genuine or not readable: it can only be shown or purged",
    Redriven.UNREADABLE: "the job's record cannot be read",
}


def attempt(command: Callable[[], Awaitable[T]]) -> T | None:
    """The command's result; None after its failure was told."""
    try:
        return trio.run(in_room, _FAILURES, command)
    except _FAILURES as failed:
        complain(f"dlq: {failed}")
        return None


def run_list(target: CommandTarget, choice: Choice, console: Console, *, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []

    def tell(each: Examined) -> None:
        rows.append(summary(each))

    total = attempt(partial(list_letters, target, choice, tell, warn=_warn))
    if total is None:
        return EXIT_FAILED
    if as_json:
        print_json({"total": total, "letters": rows}, indent=2)
        return 0
    columns = ("position", "reason", "job", "genuine", "sent", "bytes")
    table = listing(f"Dead letters: {len(rows)} of {total}", *columns)
    for row in rows:
        cells = (row["position"], row["reason"] or "-", row["jobId"] or "-")
        genuine = "yes" if row["genuine"] else "no"
        add_row(table, *cells, genuine, row["sentAt"] or "-", row["bytes"])
    console.print(table)
    return 0


def run_show(target: CommandTarget, which: str, console: Console, *, as_json: bool) -> int:
    """``which``: the position in the list, or a job's id."""
    wanted = wanted_letter(which)
    if wanted is None:
        complain(f"dlq: {which}: neither a position from 1 nor a job's id")
        return EXIT_SETTINGS
    found: list[Examined | None] = []

    async def find() -> bool:
        found.append(await find_letter(target, wanted, warn=_warn))
        return True

    if attempt(find) is None:
        return EXIT_FAILED
    each = found[0]
    if each is None:
        complain(f"dlq: {which}: no such dead letter")
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
        print_json(document, indent=2)
        return 0
    for name, value in document.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        print_plain(console, f"{name}: {text}")
    return 0


def run_redrive(
    target: CommandTarget, choice: Choice, *, jobs_a_second: float, as_json: bool
) -> int:
    """0: each of them was dispatched anew; 1: some were skipped, or it broke off."""
    results: Counter[Redriven] = Counter()
    skipped: list[dict[str, Any]] = []

    def tell(each: Examined, result: Redriven) -> None:
        results[result] += 1
        if result is not Redriven.DISPATCHED:
            job_id = str(each.job_id) if each.job_id is not None else None
            skipped.append({"position": each.position, "jobId": job_id, "why": result.value})

    async def redrive() -> bool:
        await redrive_letters(target, choice, jobs_a_second=jobs_a_second, tell=tell)
        return True

    def so_far() -> str:
        done, left = results[Redriven.DISPATCHED], len(skipped)
        return f"dlq: broken off: {done} were dispatched anew before, {left} skipped"

    with telling_what_was_done(so_far):
        is_whole = attempt(redrive) is not None
    done = f"{results[Redriven.DISPATCHED]} dispatched anew, {len(skipped)} skipped"
    with done_all_the_same(f"dlq: {done}"):
        if as_json:
            counts = {result.value: count for result, count in sorted(results.items())}
            print_json({"results": counts, "skipped": skipped}, indent=2)
        else:
            for each in sorted(skipped, key=lambda one: int(one["position"])):
                why = SKIPPED[Redriven(each["why"])]
                say(f"{each['position']}: {each['jobId'] or '-'}: skipped: {why}")
            say(done)
    return 0 if is_whole and not skipped else EXIT_FAILED


def run_purge(
    target: CommandTarget, choice: Choice, *, listed: Path | None, is_sure: bool, as_json: bool
) -> int:
    """``listed``: a file that `export` wrote; nothing but what it holds is thrown away."""
    if not is_sure:
        complain("dlq: purge throws letters away for good: say --yes")
        return EXIT_SETTINGS
    if listed is not None:
        try:
            choice = replace(choice, listed=read_saved(listed))
        except NotSaved as failed:
            complain(f"dlq: {failed}")
            return EXIT_FAILED
    so_far = [0]

    def told() -> str:
        return f"dlq: broken off: {so_far[-1]} were purged before"

    with telling_what_was_done(told):
        purged = attempt(partial(purge_letters, target, choice, tell=so_far.append))
    if purged is None:
        if so_far[-1]:
            complain(told())
        return EXIT_FAILED
    if choice.listed is not None and purged < len(choice.listed):
        complain(f"dlq: {len(choice.listed) - purged} of {listed} were not found, or not chosen")
    _tell_done(f"{purged} purged", {"purged": purged}, as_json=as_json)
    return 0


def run_export(target: CommandTarget, choice: Choice, path: Path, *, as_json: bool) -> int:
    """Nothing stays of a file that could not be written whole."""

    async def save() -> tuple[int, int]:
        with SavedLetters.create(path) as saved:
            total = await list_letters(target, choice, saved.add, warn=_warn)
        return saved.count, total

    counted = attempt(save)
    if counted is None:
        return EXIT_FAILED
    count, total = counted
    document = {"total": total, "saved": count, "path": str(path)}
    _tell_done(f"{path}: {count} of {total} dead letters", document, as_json=as_json)
    return 0


def _tell_done(done: str, document: Mapping[str, object], *, as_json: bool) -> None:
    with done_all_the_same(f"dlq: {done}"):
        if as_json:
            print_json(document)
        else:
            say(done)


def _warn() -> None:
    complain(
        "dlq: each look counts as a delivery, and this queue may drop a letter after some of them:"
        " see x-delivery-limit in `fetcher topology verify`"
    )


def wanted_letter(which: str) -> int | JobId | None:
    if which.isascii() and which.isdigit() and 0 < len(which) < 10:
        return int(which) or None
    try:
        return JobId(UUID(which))
    except ValueError:
        return None


def header_text(value: object) -> object:
    """Any header as JSON for a reader's eye."""
    return header_json(value, in_json=lambda data: data.decode("utf-8", "replace"))
