"""What `fetcher audit list` prints: who did what, newest first."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import trio
from rich.console import Console

from fetcher.bootstrap.audit_reading import AUDIT_FAILURES, read_audit
from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.cli.exits import EXIT_FAILED
from fetcher.cli.printing import add_row, complain, listing, print_json, print_unbroken
from fetcher.domain.audit import AuditCursor, AuditEntry, AuditPage, AuditQuery

COLUMNS = ("time", "actor", "action", "target", "product", "requestId", "outcome")


def run_list(target: CommandTarget, query: AuditQuery, console: Console, *, as_json: bool) -> int:
    try:
        page = trio.run(in_room, AUDIT_FAILURES, read_audit, target, query)
    except AUDIT_FAILURES as failed:
        complain(f"audit: {failed}")
        return EXIT_FAILED
    if as_json:
        for entry in page.items:
            print_json(shown(entry))
    else:
        _print_table(page, console)
    if page.next is not None:
        complain(f"audit: there are older ones: --before {place_text(page.next)}")
    return 0


def _print_table(page: AuditPage, console: Console) -> None:
    table = listing("Audit trail", *COLUMNS)
    for entry in page.items:
        facts = shown(entry)
        add_row(table, *(facts[column] for column in COLUMNS))
    print_unbroken(console, table)


def place_text(place: AuditCursor) -> str:
    """As :func:`parse_place` reads it: both parts are members of an entry in JSON."""
    return f"{_time_text(place.time)}/{place.id}"


def parse_place(text: str) -> AuditCursor | None:
    """``TIME/ID`` of an entry, or ``TIME`` alone; None for anything else."""
    time_text, _, id_text = text.partition("/")
    try:
        time = datetime.fromisoformat(time_text)
        entry_id = UUID(id_text) if id_text else UUID(int=0)
        if time.tzinfo is None:
            return None
        return AuditCursor(time=time.astimezone(UTC), id=entry_id)
    except (ValueError, OverflowError):  # the latter: in UTC it is in no year from 1 to 9999
        return None


def shown(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": str(entry.id),
        "time": _time_text(entry.time),
        "actor": entry.actor,
        "action": entry.action.value,
        "target": entry.target,
        "product": entry.product,
        "requestId": entry.request_id,
        "outcome": entry.outcome,
    }


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
