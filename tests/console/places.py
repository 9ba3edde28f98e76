"""A service on one machine with a shop to read from, and the addresses of the console's pages."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.e2e.cluster import Api, embedded
from tests.servers.processes import FetcherProcess

PRODUCT = "acme-reports"


@contextmanager
def a_service(folder: Path, **settings: str) -> Iterator[tuple[FetcherProcess, Api]]:
    with embedded(folder, **settings) as (process, api):
        make_shop(folder)
        yield process, api


def make_shop(folder: Path, *, items: int = 300, tables: int = 0) -> None:
    sources = folder / "fetcher-data" / "sources"
    sources.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(sources / "shop.db")) as shop, shop:
        shop.execute(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, made DATE)"
        )
        shop.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?)",
            [(n, f"Größe <b>{n}</b>", n / 4, f"2026-01-{n % 28 + 1:02}") for n in range(items)],
        )
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item INTEGER)")
        for number in range(tables):
            shop.execute(f"CREATE TABLE t_{number:05} (id INTEGER PRIMARY KEY, note TEXT)")


def console(api: Api, place: str = "/connections") -> str:
    return f"http://127.0.0.1:{api.port}/console/index.html#{place}"


def register(api: Api, name: str = "shop", **changes: object) -> Any:
    """The stored connection to the shop."""
    body = {"configName": name, "type": "SQLITE", "databaseName": "shop.db", **changes}
    made = api.connect(body)
    assert made.status == 201, made.body
    return made.body


def give_token(page: Page, token: str) -> None:
    """To the dialog that asks for one."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Access token").fill(token)
    dialog.get_by_role("button", name="Use token").click()
