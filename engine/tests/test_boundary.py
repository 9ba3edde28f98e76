"""The package imports nothing but the harmless part of the standard library (spec 2)."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1]
PACKAGE = ENGINE / "fetcher_engine"

DENIED = frozenset(
    [
        "asyncio",
        "threading",
        "concurrent",
        "multiprocessing",
        "subprocess",
        "socket",
        "ssl",
        "selectors",
        "http",
        "xmlrpc",
        "smtplib",
        "ftplib",
        "sqlite3",
        "dbm",
        "ctypes",
        "logging",
        "signal",
        "socketserver",
        "wsgiref",
    ]
)


def is_allowed(module: str) -> bool:
    """Whether the package may import this module."""
    root = module.partition(".")[0]
    if root == "fetcher_engine":
        return True
    if module == "urllib.request" or module.startswith("urllib.request."):
        return False
    return root in sys.stdlib_module_names and root not in DENIED


def imported_modules(source: str) -> Iterator[str]:
    """Every import, wherever it stands; a dynamic one that cannot be read counts as ``?``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "fetcher_engine" if node.level else node.module or "?"
            if node.module == "urllib":
                yield from (f"urllib.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "importlib.import_module",
            "import_module",
            "__import__",
        ):
            name = node.args[0] if node.args else None
            literal = isinstance(name, ast.Constant) and isinstance(name.value, str)
            yield str(name.value) if literal and isinstance(name, ast.Constant) else "?"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_module_imports_only_what_is_allowed(path: Path) -> None:
    assert [m for m in imported_modules(path.read_text()) if not is_allowed(m)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import requests",
        "import trio",
        "import asyncio",
        "import fetcher",
        "from tests import x",
        "def f():\n    import socket",
        "if TYPE_CHECKING:\n    import logging",
        "from urllib import request",
        "importlib.import_module('redis')",
        "__import__(name)",
    ],
)
def test_forbidden_import_is_found(source: str) -> None:
    assert not all(map(is_allowed, imported_modules(source)))


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("json", True),
        ("collections.abc", True),
        ("urllib.parse", True),
        ("fetcher_engine.memory", True),
        ("requests", False),
        ("trio", False),
        ("fetcher_enginecompat", False),
        ("fetcher_engine_tools", False),
    ],
)
def test_classifier(module: str, allowed: bool) -> None:
    assert is_allowed(module) is allowed


def test_manifest_has_no_dependency() -> None:
    project = tomllib.loads((ENGINE / "pyproject.toml").read_text())["project"]
    assert project["name"] == "fetcher-engine"
    assert project.get("dependencies", []) == []
    assert "optional-dependencies" not in project
    assert "dependencies" not in project.get("dynamic", [])


def test_clean_interpreter_without_site_packages_imports_the_package() -> None:
    program = f"""
import sys
sys.path.insert(0, {str(ENGINE)!r})
import fetcher_engine, fetcher_engine.memory
import os
stdlib = os.path.dirname(os.__file__)
ours = {str(PACKAGE)!r}
for name, module in list(sys.modules.items()):
    origin = getattr(module, "__file__", None)
    if origin and not origin.startswith((stdlib, ours)):
        print("foreign", name, origin)
print("loops", sorted({{"trio", "asyncio", "threading", "logging"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("loops []\n", "", 0)
