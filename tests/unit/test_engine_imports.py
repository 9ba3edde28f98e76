"""The Engine is used as a stranger would use it: by its public names (design section 3)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("fetcher", "tests", "benchmarks")
PUBLIC = {"fetcher_engine", "fetcher_engine.memory"}
INSTRUMENTS = {("tests/hygiene/test_cancelled_jobs.py", "fetcher_engine.read_ahead")}
"""Tests that turn a constant of the Engine down, so that a small job takes a large one's steps."""
SUBMODULES = {path.stem for path in (ROOT / "engine" / "fetcher_engine").glob("*.py")} | {"memory"}


def private_imports(source: str) -> Iterator[tuple[int, str]]:
    """Line and module of each import of an Engine module that is not one of the public roots."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # a name imported from the package itself may be a module of it, too
            modules = [node.module]
            if node.module == "fetcher_engine":
                modules += [f"fetcher_engine.{a.name}" for a in node.names if a.name in SUBMODULES]
        else:
            continue
        for module in modules:
            if module.startswith("fetcher_engine.") and module not in PUBLIC:
                yield node.lineno, module


def test_hosts_import_the_engines_public_names_only() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 100
    found = {
        (path.relative_to(ROOT).as_posix(), module)
        for path in paths
        for _, module in private_imports(path.read_text(encoding="utf-8"))
    }
    assert found == INSTRUMENTS


@pytest.mark.parametrize(
    "source",
    [
        "from fetcher_engine.errors import EngineError",
        "import fetcher_engine.errors",
        "import json, fetcher_engine.errors as e",
        "from fetcher_engine import errors",
        "from fetcher_engine.memory.connector import MemorySource",
        "def f():\n    from fetcher_engine.errors import Stage",
    ],
)
def test_an_import_of_a_module_of_the_engine_is_seen(source: str) -> None:
    assert len(list(private_imports(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import fetcher_engine",
        "from fetcher_engine import EngineError, memory",
        "from fetcher_engine.memory import MemorySource",
        "import fetcher_engine.memory",
        "from fetcher_engines.errors import X",
        "from .errors import X",
    ],
)
def test_its_public_names_are_free(source: str) -> None:
    assert list(private_imports(source)) == []
