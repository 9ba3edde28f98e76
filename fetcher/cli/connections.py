"""`fetcher connections list|show|test|delete`: connections of a running service."""

from collections.abc import Mapping
from typing import Final

from rich.console import Console

from fetcher.bootstrap.service_calls import ServiceCall
from fetcher.cli.answer_tables import Column, items_of, print_items, print_members, text_of
from fetcher.cli.exits import EXIT_SETTINGS
from fetcher.cli.printing import complain, say
from fetcher.cli.service_requests import Target, Told, get, item_path, run_call, run_change

ROOT: Final = "/v1/management/connections"
COLUMNS: Final[Mapping[str, Column]] = {
    "id": "id",
    "config name": "configName",
    "type": "type",
    "host": "host",
    "port": "port",
    "database": "databaseName",
    "user": "userName",
    "product": "productName",
    "updated": "updatedAt",
}


def run_list(
    target: Target, options: Mapping[str, object], console: Console, *, product: str
) -> int:
    """``options``: the API's query parameters. One page."""

    def tell(told: Told) -> None:
        items, total = items_of(told.document), told.document.get("total")
        print_items(console, f"Connections: {len(items)} of {text_of(total)}", COLUMNS, items)

    return run_call(target, get(ROOT, options, product=product), tell, has=("items", "total"))


def run_show(target: Target, connection_id: str, console: Console) -> int:
    call = get(item_path(ROOT, connection_id))
    return run_call(target, call, lambda told: print_members(console, told.document), has=("id",))


def run_test(target: Target, connection_id: str) -> int:
    def tell(told: Told) -> None:
        words, latency = (text_of(told.document.get(name)) for name in ("message", "latencyMs"))
        say(f"{connection_id}: {words} ({latency} ms)")

    call = ServiceCall(method="POST", path=item_path(ROOT, connection_id, "test"))
    return run_call(target, call, tell, has=("message", "latencyMs"))


def run_delete(target: Target, connection_id: str, *, is_sure: bool) -> int:
    if not is_sure:
        complain("connections: delete is for good: say --yes")
        return EXIT_SETTINGS
    call = ServiceCall(method="DELETE", path=item_path(ROOT, connection_id))
    return run_change(target, call, lambda _: f"{connection_id}: deleted")
