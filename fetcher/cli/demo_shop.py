"""A small shop in SQLite: every storage class, non-ASCII text, NULLs, big integers."""

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

CUSTOMERS = 2_000
PRODUCTS = 500
ORDERS = 6_000
ORDER_LINES = 12_000
STOCK_MOVES = 3_000
TOTAL_ROWS = CUSTOMERS + PRODUCTS + ORDERS + ORDER_LINES + STOCK_MOVES

FIRST_NAMES = (
    "Zoë",
    "José",
    "Łukasz",
    "Åsa",
    "Nguyễn",
    "李雷",
    "Ólafur",
    "Мария",
    "Fátima",
    "Ἑλένη",
)
LAST_NAMES = (
    "Müller",
    "Čapek",
    "O'Brien",
    "García",
    "Øberg",
    "山田",
    "Иванова",
    "Ångström",
    "Şahin",
)
STATUSES = ("open", "paid", "sent", "returned")

SCHEMA = """
CREATE TABLE customers (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, loyalty REAL, avatar BLOB,
  registered_at TEXT NOT NULL
);
CREATE TABLE products (
  sku TEXT PRIMARY KEY, title TEXT NOT NULL, price NUMERIC NOT NULL, weight_kg REAL, ean INTEGER
) WITHOUT ROWID;
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, status TEXT NOT NULL,
  total_cents INTEGER NOT NULL, note TEXT, placed_at TEXT NOT NULL
);
CREATE TABLE order_lines (
  order_id INTEGER NOT NULL REFERENCES orders, line INTEGER NOT NULL, sku TEXT NOT NULL,
  quantity INTEGER NOT NULL, discount REAL, PRIMARY KEY (order_id, line)
);
CREATE TABLE stock_moves (
  id INTEGER PRIMARY KEY, sku TEXT NOT NULL, delta INTEGER NOT NULL, ledger_id INTEGER NOT NULL,
  fingerprint BLOB
);
"""


def create_shop(path: Path, *, seed: int = 2026) -> int:
    """Write the database file; how many rows it holds. The same seed gives the same rows."""
    dice = random.Random(seed)  # noqa: S311 - made-up rows, no secret
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(SCHEMA)
        with shop:
            shop.executemany("INSERT INTO customers VALUES (?,?,?,?,?,?)", customers(dice))
            shop.executemany("INSERT INTO products VALUES (?,?,?,?,?)", products(dice))
            shop.executemany("INSERT INTO orders VALUES (?,?,?,?,?,?)", orders(dice))
            shop.executemany("INSERT INTO order_lines VALUES (?,?,?,?,?)", order_lines(dice))
            shop.executemany("INSERT INTO stock_moves VALUES (?,?,?,?,?)", stock_moves(dice))
    return TOTAL_ROWS


def customers(dice: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number in range(1, CUSTOMERS + 1):
        name = f"{dice.choice(FIRST_NAMES)} {dice.choice(LAST_NAMES)}"
        email = None if number % 7 == 0 else f"kunde{number}@shop.test"
        loyalty = None if number % 5 == 0 else round(dice.random() * 10, 3)
        avatar = dice.randbytes(24) if number % 3 == 0 else None
        rows.append((number, name, email, loyalty, avatar, moment(dice)))
    return rows


def products(dice: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number in range(PRODUCTS):
        price = dice.randrange(100, 100_000) if number % 4 == 0 else round(dice.random() * 500, 2)
        weight = None if number % 9 == 0 else dice.random() * 20
        title = f"Artikel {number}: „Größe {dice.choice('SMLXL')}“ 🎁"
        rows.append((f"SKU-{number:05d}", title, price, weight, 4_000_000_000_000 + number))
    return rows


def orders(dice: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number in range(1, ORDERS + 1):
        note = None if number % 4 else 'Bitte "leise" klingeln\nHinterhof \\ 2. Stock'
        customer = dice.randrange(1, CUSTOMERS + 1)
        cents = dice.randrange(500, 500_000)
        rows.append((number, customer, dice.choice(STATUSES), cents, note, moment(dice)))
    return rows


def order_lines(dice: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number in range(ORDER_LINES):
        sku = f"SKU-{dice.randrange(PRODUCTS):05d}"
        discount = None if number % 3 else 0.1 * dice.randrange(1, 5)
        rows.append((number // 2 + 1, number % 2 + 1, sku, dice.randrange(1, 9), discount))
    return rows


def stock_moves(dice: random.Random) -> list[tuple[object, ...]]:
    """Ledger ids run up to the ends of 64 bits: no double holds them."""
    rows: list[tuple[object, ...]] = []
    for number in range(STOCK_MOVES):
        ledger = (2**63 - 1 - number) if number % 2 else -(2**63) + number
        sku = f"SKU-{dice.randrange(PRODUCTS):05d}"
        rows.append((number + 1, sku, dice.randrange(-50, 50), ledger, dice.randbytes(8)))
    return rows


def moment(dice: random.Random) -> str:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return (start + timedelta(seconds=dice.randrange(60_000_000))).strftime("%Y-%m-%dT%H:%M:%SZ")
