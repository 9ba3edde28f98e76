"""No row of the specification's test table is without a test (spec 21, spec_rows.toml)."""

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS: dict[str, list[dict[str, Any]]] = tomllib.loads((HERE / "spec_rows.toml").read_text())

ROWS_OF_PART = {
    "21.1": 19,
    "21.2": 8,
    "21.3": 23,
    "21.4": 6,
    "21.5": 7,
    "21.6": 12,
    "21.7": 15,
    "21.8": 27,
    "21.9": 25,
    "21.10": 19,
    "21.11": 6,
    "21.12": 6,
    "21.13": 8,
    "21.14": 31,
    "21.15": 4,
}
"""As many as the tables of the specification have."""

SOURCES = ("design.md ", "decisions-on-spec.md", "spec ")


def defined_tests(path: Path) -> set[str]:
    """The names of the file's test functions; none where there is no file."""
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def missing(test_id: str) -> bool:
    file, _, name = test_id.partition("::")
    path = ROOT / file if "/" in file else HERE / file
    return name not in defined_tests(path)


def test_every_part_has_the_rows_of_the_specification() -> None:
    assert {part: len(rows) for part, rows in ROWS.items()} == ROWS_OF_PART


@pytest.mark.parametrize("part", ROWS)
def test_every_row_names_tests_that_exist(part: str) -> None:
    untested = [row["row"] for row in ROWS[part] if not row["tests"]]
    gone = [test_id for row in ROWS[part] for test_id in row["tests"] if missing(test_id)]
    assert (untested, gone) == ([], [])


@pytest.mark.parametrize("part", ROWS)
def test_row_that_was_changed_says_how_and_by_what(part: str) -> None:
    for row in ROWS[part]:
        assert row.keys() - {"row", "tests"} in (set(), {"now", "by"}), row
        assert row.get("now", "changed")
        assert row.get("by", SOURCES[0]).startswith(SOURCES), row


def test_test_that_is_gone_is_noticed() -> None:
    assert missing("test_spec_rows.py::test_that_nobody_wrote")
    assert missing("test_nowhere.py::test_anything")
    assert not missing("engine/tests/test_spec_rows.py::test_test_that_is_gone_is_noticed")
