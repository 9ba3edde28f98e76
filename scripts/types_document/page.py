"""The page itself: a table a database."""

import re
from collections.abc import Iterator
from typing import Final

from scripts.types_document.families import FAMILIES
from scripts.types_document.golden import GoldenType, GoldenValue, matrix

_INTRODUCTION: Final = """# What each column type becomes

<!-- Generated: `make docs` writes this file from the connectors and from tests/golden/types. -->

Values are exact: nothing is rounded, guessed or silently made null, whatever path renders them.
What the tables show is executed by tests, on real servers of PostgreSQL, MariaDB and SQLite and on
a MongoDB-compatible one; for SQL Server and Oracle on what their drivers hand over, since no server
of theirs is at hand.

`dataRequest.options` of a job changes the form of some types. An empty cell means that the option
changes nothing:

- `values`: `compatible` by default. `natural` gives dates without a time, wall times without `Z`,
  and SQL arrays as JSON arrays.
- `bigint`: `number` by default, for integers of any size. `string` makes strings of those beyond
  ±2^53.
- `decimals`: `string` by default, with the scale. `number` gives numbers with the same digits.

NULL is `null` in every type. A type that is not listed comes as the text that the database itself
writes for it.

Text that is not valid in its encoding fails the job, with source, table and column named. Where
the connection's `metadata.invalidText` is `replace` (`fail` is the default), U+FFFD stands in its
place, and the job's log says in how many places of which table: `invalid_text_replaced`. Names of
fields inside MongoDB's documents are never replaced, since two could become one.
"""

_TITLES: Final = {
    "postgresql": (
        "PostgreSQL",
        "The session has `TimeZone` UTC, `DateStyle` ISO and `IntervalStyle` postgres. `json` and"
        " `jsonb` come\nwith the blanks that PostgreSQL prints (a line break becomes a blank); they"
        " are left out below.",
    ),
    "mysql": (
        "MySQL and MariaDB",
        "Whether a column is text or binary is decided by its charset. The session's zone is UTC.\n"
        "Bytes that a charset leaves undefined, for which the server would show `?`, are invalid"
        " text;\nin `cp1256`, `dec8`, `geostd8`, `greek`, `hebrew`, `hp8` and `swe7` they are not"
        " replaced, and\nalways fail the job. MariaDB's `json` comes with its blanks as"
        " stored and MySQL's with those that\nthe server prints"
        " (a line break becomes a blank); they are left out below.\nWhat a strict parser does not"
        " read in a `json` of MariaDB (`1.`, or no JSON at all) comes as a\nstring, the database's"
        " own text.",
    ),
    "sqlserver": (
        "SQL Server",
        "By the catalogue's base type: `rowversion` is called `timestamp` there.",
    ),
    "oracle": ("Oracle", "By the catalogue's type, precision and scale."),
    "mongodb": (
        "MongoDB",
        "Values are written as canonical Extended JSON here. BSON has no column types: each value"
        " has its own.",
    ),
    "sqlite": (
        "SQLite",
        "The storage class of each value decides, not the column's declaration.",
    ),
}

_COLUMNS: Final = (
    "type", "becomes", "value", "JSON", "`natural`", "`bigint: string`", "`decimals: number`",
)  # fmt: skip
_HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n"


def page() -> str:
    return "\n".join([_INTRODUCTION, *(_section(database) for database in _TITLES)])


def _section(database: str) -> str:
    title, note = _TITLES[database]
    families = FAMILIES[database]
    lines = [
        line
        for each in matrix(database).types
        for line in _lines(each, families.words[families.of(each.name)])
    ]
    lines += [
        f"| `{name}` | {families.words[family]} | (not tested) | | | | |\n"
        for name, family in families.untested.items()
    ]
    return f"## {title}\n\n{note}\n\n{_HEAD}{''.join(lines)}"


def _lines(type_: GoldenType, becomes: str) -> Iterator[str]:
    name, words = _code(type_.name), becomes
    for value in type_.values:
        if not value.is_shown:
            continue
        example = _code(value.value)
        if value.declared != type_.name:
            example = f"{_code(value.declared)}: {example}"
        cells = [name, words, example, *_forms(value)]
        yield f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")
        name = words = ""


def _forms(value: GoldenValue) -> Iterator[str]:
    usual = value.expected["json"]
    yield _code(usual)
    for option in ("natural", "bigint", "decimals"):
        changed = value.expected[option]
        yield _code(changed) if changed != usual else ""


def _code(text: str) -> str:
    """A code span of a table (GFM 4.10): a bar is escaped even there."""
    one_line = " ".join(text.split("\n")).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", one_line)), default=0) + 1)
    pad = " " if one_line.startswith("`") or one_line.endswith("`") else ""
    return f"{fence}{pad}{one_line}{pad}{fence}"
