"""`fetcher jobs list|show|cancel|rerun`: jobs of a running service."""

from collections.abc import Mapping
from typing import Final

from rich.console import Console

from fetcher.bootstrap.service_calls import ServiceCall
from fetcher.cli.answer_tables import (
    Column,
    items_of,
    print_items,
    print_members,
    tell_more,
    text_of,
)
from fetcher.cli.service_requests import Target, Told, get, item_path, run_call, run_change
from fetcher.domain.json_values import JsonObject

ROOT: Final = "/v1/fetcher"


def run_list(
    target: Target, options: Mapping[str, object], console: Console, *, product: str
) -> int:
    """``options``: the API's query parameters. One page; where to go on is told."""

    def tell(told: Told) -> None:
        items = items_of(told.document)
        print_items(console, f"Jobs: {len(items)}", COLUMNS, items)
        tell_more("--cursor", told.document.get("nextCursor"))

    return run_call(target, get(ROOT, options, product=product), tell, has=("items", "limit"))


def run_show(target: Target, job_id: str, console: Console) -> int:
    call = get(item_path(ROOT, job_id))
    return run_call(target, call, lambda told: print_members(console, told.document), has=("id",))


def run_cancel(target: Target, job_id: str) -> int:
    def word(told: Told) -> str:
        is_asked = told.status == 202
        return f"{job_id}: {'its worker was asked to stop' if is_asked else 'cancelled'}"

    call = ServiceCall(method="POST", path=item_path(ROOT, job_id, "cancel"))
    return run_change(target, call, word, has=("jobId", "status"))


def run_rerun(target: Target, job_id: str) -> int:
    def word(told: Told) -> str:
        new_id, words = (text_of(told.document.get(name)) for name in ("jobId", "message"))
        return f"{new_id}: {words}"

    call = ServiceCall(method="POST", path=item_path(ROOT, job_id, "rerun"))
    return run_change(target, call, word, has=("jobId", "message"))


def _connections(job: JsonObject) -> str:
    names = job.get("connections")
    return ", ".join(map(text_of, names)) if isinstance(names, list) else "-"


def _trouble(job: JsonObject) -> str:
    """Why it failed, or why it waits."""
    error = job.get("error")
    if isinstance(error, dict):
        parts = [error.get(name) for name in ("code", "source", "stage", "reason")]
        return " ".join(text_of(each) for each in parts if each is not None) or "-"
    return text_of(job.get("waitingReason") or "-")


COLUMNS: Final[Mapping[str, Column]] = {
    "id": "id",
    "status": "status",
    "source": "source",
    "connections": _connections,
    "created": "createdAt",
    "ended": "completedAt",
    "rows": "rowCount",
    "trouble": _trouble,
}
