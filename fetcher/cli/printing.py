"""How commands print: nothing that came from outside is markup, or moves a terminal's cursor."""

import json
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fetcher.cli.output import OUTPUT
from fetcher.domain.visible_text import visible, visible_in_json
from fetcher.log_secrets import live_secrets

MOST_WIDTH: Final = 10_000


def complain(text: str) -> None:
    """A line on standard error, where logs go too: without the secrets that we hold."""
    # Where that takes nothing there is nobody to tell.
    with suppress(OSError, ValueError):
        print(visible(live_secrets.masked(text)), file=sys.stderr)


def say(text: str) -> None:
    """A line on standard output, as it is but for control characters."""
    print(visible(text), file=OUTPUT)


def print_json(value: object, *, indent: int | None = None) -> None:
    """A document on standard output, or with no ``indent`` a line."""
    print(visible_in_json(json.dumps(value, ensure_ascii=False, indent=indent)), file=OUTPUT)


def print_json_text(text: str) -> None:
    """A document as somebody else wrote it: no number of it is read."""
    print(visible_in_json(text), file=OUTPUT)


def listing(title: str, *columns: str, whole: Collection[str] = ()) -> Table:
    """An empty table; :func:`add_row` fills it. The columns in ``whole`` are not broken, as long
    as the others can give way."""
    table = Table(title=cell(title, style="table.title"), title_justify="left")
    for column in columns:
        table.add_column(cell(column), overflow="fold", no_wrap=column in whole)
    return table


def print_unbroken(console: Console, table: Table) -> None:
    """No word of it is broken, also where its lines are longer than the terminal's then: ids are
    to be copied."""
    free = console.options.update(width=MOST_WIDTH)
    console.width = max(console.width, console.measure(table, options=free).maximum)
    console.print(table, crop=False)


def add_row(table: Table, *values: object) -> None:
    """What has a style of its own is a :func:`cell` already."""
    table.add_row(*(each if isinstance(each, Text) else cell(each) for each in values))


def cell(value: object, *, style: str = "") -> Text:
    """For a table, or a part of a line."""
    return Text(visible(str(value)), style=style)


def print_plain(console: Console, text: str) -> None:
    """A paragraph in the console's width."""
    console.print(Text(visible(text)), soft_wrap=True)
