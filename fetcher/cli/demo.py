"""`fetcher demo`: the main job, on real input, from registration to the opened result."""

import base64
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from fetcher.cli import demo_shop
from fetcher.cli.demo_postgres import CONFIG_NAME as WAREHOUSE
from fetcher.cli.demo_postgres import PARCELS, Warehouse, warehouse
from fetcher.cli.demo_server import PRODUCT, Api, DemoFailed, running_server
from fetcher.cli.printing import add_row, cell, listing, print_plain, say
from fetcher.consumer import derive_keys, open_result, verify_event
from fetcher.crypto.keys import KeySet

SHOP = "corner_shop"
MIN_LOYALTY = 5
STOCK_DELTA = (-10, 10)
FIRST_ROWS = 5
CELL_CHARACTERS = 20


@dataclass(slots=True)
class Demo:
    """What the demo has found so far."""

    folder: Path
    console: Console
    warehouse: Warehouse | None = None
    event: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)
    plain_bytes: int = 0

    @property
    def data_folder(self) -> Path:
        return self.folder / "fetcher-data"

    @property
    def row_count(self) -> int:
        return sum(len(rows) for tables in self.document.values() for rows in tables.values())


def run_demo(console: Console) -> int:
    """0 only when every step held; the last line then is ``demo: OK …``."""
    started_at = time.monotonic()
    dsn = os.environ.get("FETCHER_DEMO_POSTGRES_DSN", "")
    with tempfile.TemporaryDirectory(prefix="fetcher-demo-") as name:
        demo = Demo(folder=Path(name), console=console)
        try:
            with ExitStack() as stack:
                if dsn:
                    demo.warehouse = stack.enter_context(warehouse(dsn))
                run_steps(demo)
        except DemoFailed as failed:
            tell_failed(console, str(failed))
            return 1
        except psycopg.Error as failed:
            # whoever runs the demo named that server: its words are theirs to read
            tell_failed(console, f"FETCHER_DEMO_POSTGRES_DSN: {failed}")
            return 1
        show(demo)
        seconds = time.monotonic() - started_at
        # Plain, so that it reads the same without a terminal.
        say(f"demo: OK jobs=1 rows={demo.row_count} bytes={demo.plain_bytes} seconds={seconds:.1f}")
    return 0


def tell_failed(console: Console, why: str) -> None:
    console.print(Text.assemble(("demo: FAILED", "bold red"), " ", cell(why)))


def run_steps(demo: Demo) -> None:
    with steps(demo.console) as step:
        step("Starting `fetcher --role=all`: no service, no setting")
        with running_server(demo.folder) as api:
            step("Making a small shop in SQLite")
            path = demo.data_folder / "sources" / "shop.db"
            path.parent.mkdir(mode=0o700, exist_ok=True)
            rows = demo_shop.create_shop(path)
            print_plain(demo.console, f"  5 tables, {rows:,} rows in {path.name}")
            step("Registering the connections and reading their schemas")
            register(demo, api)
            step("Posting one job and waiting for its event")
            with api.event_stream() as events:
                answer = api.call("POST", "/v1/fetcher", job_body(demo), expect=202)
                demo.event = next(e for e in events if e["jobId"] == answer["jobId"])
            if demo.event["status"] != "completed":
                raise DemoFailed(f"the job ended as {demo.event}")
            step("Verifying the event's signature, opening the result")
            open_stored_result(demo, published_result(demo))
            step("Comparing with the shop itself")
            compare(demo, path)
            step("Stopping the server cleanly")


@contextmanager
def steps(console: Console) -> Iterator[Any]:
    """A spinner on a terminal; plain lines elsewhere."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def step(text: str) -> None:
            progress.update(task, description=cell(text).plain)
            console.print(Text.assemble(("•", "bold"), " ", cell(text)))

        yield step


def register(demo: Demo, api: Api) -> None:
    bodies = [
        {
            "configName": SHOP,
            "type": "SQLITE",
            "databaseName": "shop.db",
        }
    ]
    if demo.warehouse is not None:
        bodies.append(demo.warehouse.connection)
    for body in bodies:
        made = api.call("POST", "/v1/management/connections", body, expect=201)
        api.call("POST", f"/v1/management/connections/{made['id']}/test")
        schema = api.call("GET", f"/v1/management/connections/{made['id']}/schema")
        table = listing(f"{made['configName']} ({made['type']})", "table", "fields")
        for entry in schema["tables"]:
            add_row(table, entry["name"], ", ".join(entry["fields"]))
        demo.console.print(table)


def job_body(demo: Demo) -> dict[str, Any]:
    low, high = STOCK_DELTA
    fields: dict[str, Any] = {
        SHOP: {
            "customers": ["id", "name", "email", "loyalty", "avatar", "registered_at"],
            "stock_moves": ["id", "sku", "delta", "ledger_id", "fingerprint"],
        }
    }
    filters: dict[str, Any] = {
        SHOP: {
            "customers": {"loyalty": {"gte": [MIN_LOYALTY]}},
            "stock_moves": {"delta": {"between": [low, high]}},
        }
    }
    if demo.warehouse is not None:
        fields[WAREHOUSE] = {"parcels": ["*"]}
        filters[WAREHOUSE] = {"parcels": {"insured": {"eq": [True]}}}
    return {
        "dataRequest": {"mappedFields": fields, "filters": filters},
        "metadata": {"source": PRODUCT, "correlationId": "demo"},
    }


def published_result(demo: Demo) -> Mapping[str, Any]:
    """``result`` of the event as a subscriber got it, after checking who signed it."""
    lines = (demo.data_folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    line = next(json.loads(text) for text in lines if demo.event["jobId"] in text)
    verify_event(
        line["headers"],
        line["body"].encode(),
        line["exchange"],
        line["routingKey"],
        key=keys_of(demo).external_hmac,
    )
    result: Mapping[str, Any] = json.loads(line["body"])["result"]
    return result


def keys_of(demo: Demo) -> KeySet:
    return derive_keys((demo.data_folder / "master.key").read_text(encoding="ascii"))


def open_stored_result(demo: Demo, result: Mapping[str, Any]) -> None:
    keys = keys_of(demo)
    sealed = (demo.data_folder / "objects" / result["path"]).read_bytes()
    with open_result(
        sealed,
        storage_key=keys.storage,
        hmac_key=keys.external_hmac,
        expected_hmac=result["hmac"],
        expected_size=result["sizeBytes"],
    ) as opened:
        plain = opened.read()
    demo.plain_bytes = len(plain)
    demo.document = json.loads(plain)


def compare(demo: Demo, path: Path) -> None:
    """Every row of the result against the shop, asked directly."""
    low, high = STOCK_DELTA
    with closing(sqlite3.connect(path)) as shop:
        wanted = {
            "customers": shop.execute(
                "SELECT id, name, email, loyalty, avatar, registered_at FROM customers"
                " WHERE loyalty >= ?",
                [MIN_LOYALTY],
            ).fetchall(),
            "stock_moves": shop.execute(
                "SELECT id, sku, delta, ledger_id, fingerprint FROM stock_moves"
                " WHERE delta BETWEEN ? AND ?",
                [low, high],
            ).fetchall(),
        }
    for table, rows in wanted.items():
        found = sorted(as_shown(row) for row in demo.document[SHOP][table])
        if found != sorted(tuple(text_of(value) for value in row) for row in rows):
            raise DemoFailed(f"{table}: the result differs from the shop")
    if demo.warehouse is not None:
        parcels = demo.document[WAREHOUSE]["parcels"]
        if len(parcels) != PARCELS // 2:
            raise DemoFailed(f"parcels: expected {PARCELS // 2} rows, found {len(parcels)}")


FIELD_ORDER = (
    *("id", "name", "email", "loyalty", "avatar", "registered_at"),
    *("sku", "delta", "ledger_id", "fingerprint"),
)


def as_shown(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(text_of(row[name]) for name in FIELD_ORDER if name in row)


def text_of(value: object) -> str:
    return repr(base64.b64encode(value).decode() if isinstance(value, bytes) else value)


def show(demo: Demo) -> None:
    for config, tables in demo.document.items():
        for name, rows in tables.items():
            title = f"{config}.{name}: the first of {len(rows):,} rows"
            table = listing(title, *(rows[0] if rows else ()))
            for row in rows[:FIRST_ROWS]:
                add_row(table, *(shorten(value) for value in row.values()))
            demo.console.print(table)
    verified = f"job {demo.event['jobId']}: signature, decryption and every row verified"
    print_plain(demo.console, verified)


def shorten(value: object) -> Text:
    if value is None:
        return cell("NULL", style="dim")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cell(text if len(text) <= CELL_CHARACTERS else f"{text[: CELL_CHARACTERS - 1]}…")
