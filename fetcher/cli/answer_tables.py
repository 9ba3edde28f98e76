"""How commands print what the service answers: lists as tables, one thing as lines."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from fetcher.cli.printing import add_row, complain, listing, print_plain
from fetcher.domain.json_text import dumps
from fetcher.domain.json_values import JsonObject, JsonValue

Column = str | Callable[[JsonObject], object]


def print_items(
    console: Console, title: str, columns: Mapping[str, Column], items: Sequence[JsonValue]
) -> None:
    """A column is a member's name, or what makes its text of an item."""
    table = listing(title, *columns)
    for item in items:
        if isinstance(item, dict):
            add_row(table, *(_shown(item, column) for column in columns.values()))
    console.print(table)


def print_members(console: Console, document: JsonObject) -> None:
    for name, value in document.items():
        print_plain(console, f"{name}: {text_of(value)}")


def items_of(document: JsonObject) -> Sequence[JsonValue]:
    items = document.get("items")
    return items if isinstance(items, list) else []


def tell_more(option: str, place: object) -> None:
    """On standard error: a list that is read by a program has its lines alone on the other."""
    if place:
        complain(f"more: {option}={place}")


def text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else dumps(value)


def _shown(item: JsonObject, column: Column) -> object:
    if callable(column):
        return column(item)
    value = item.get(column)
    return "-" if value is None else text_of(value)
