"""Which tests hold a row of a specification's table: test ids as the tables' files name them."""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

Rows = dict[str, list[dict[str, Any]]]


def registers() -> dict[str, Rows]:
    """Every ``spec_rows.toml`` of the unit tests, by its folder's name: rows by part."""
    return {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "tests" / "unit").glob("*/spec_rows.toml"))
    }


def untested(rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The rows that name no test, and the named tests that do not exist."""
    bare = [row["row"] for row in rows if not row["tests"]]
    return bare, [test_id for row in rows for test_id in row["tests"] if missing(test_id)]


def missing(test_id: str) -> bool:
    """Ids are ``file::function`` below ``tests/``, or from the root where they are the Engine's."""
    file, _, name = test_id.partition("::")
    folder = ROOT if file.startswith("engine/") else ROOT / "tests"
    return name not in _defined_tests(folder / file)


@cache
def _defined_tests(path: Path) -> frozenset[str]:
    """The names of the file's test functions; none where there is no file."""
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))
