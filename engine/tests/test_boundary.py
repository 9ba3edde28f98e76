"""The package imports nothing but the harmless part of the standard library (spec 2)."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1]
PACKAGE = ENGINE / "fetcher_engine"

ALLOWED = frozenset(
    [
        "abc",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "functools",
        "hashlib",
        "hmac",
        "inspect",
        "io",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "struct",
        "time",
        "types",
        "typing",
        "uuid",
        "weakref",
    ]
)
"""What the package itself may import: nothing that opens, starts or waits for anything."""

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
        "trio",
    ]
)
"""What must not even be loaded by what the package imports (spec 2)."""

OUTSIDE = frozenset(["open", "print", "input", "eval", "exec", "compile", "breakpoint"])
"""Built-in functions that reach out of the interpreter or run text."""


def is_allowed(module: str) -> bool:
    """Whether the package may import this module."""
    return module.partition(".")[0] in ALLOWED | {"fetcher_engine"}


def imported_modules(source: str) -> Iterator[str]:
    """Every import, wherever it stands; a dynamic one that cannot be read counts as ``?``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "fetcher_engine" if node.level else node.module or "?"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "importlib.import_module",
            "import_module",
            "__import__",
        ):
            name = node.args[0] if node.args else None
            literal = isinstance(name, ast.Constant) and isinstance(name.value, str)
            yield str(name.value) if literal and isinstance(name, ast.Constant) else "?"


def called_outside(source: str) -> list[str]:
    """Calls of the built-in functions that a library without files and output does without."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [
        call.func.id
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in OUTSIDE
    ]


every_module = pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)


@every_module
def test_module_imports_only_what_is_allowed(path: Path) -> None:
    assert [m for m in imported_modules(path.read_text()) if not is_allowed(m)] == []


@every_module
def test_module_opens_no_file_and_prints_nothing(path: Path) -> None:
    assert called_outside(path.read_text()) == []


def test_opened_file_is_found() -> None:
    assert called_outside("def f():\n    with open('x') as file:\n        print(file)") == [
        "open",
        "print",
    ]


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
        "import os",
        "from pathlib import Path",
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
        ("urllib.request", False),
        ("os.path", False),
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


_LIST_WHAT_GETS_LOADED = """
import sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    __import__(name)
loaded = set(sys.modules) - before
import json
print(json.dumps({name: getattr(sys.modules[name], "__file__", None) for name in loaded}))
"""
"""``__import__`` is built in: importlib or pkgutil would be loaded before we could look."""


def modules_of(package: Path) -> list[str]:
    """Every module below a package's folder by its file, whoever imports it."""
    paths = (path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def loaded_with(package: Path) -> dict[str, str | None]:
    """What a fresh interpreter without site-packages loads with all modules of a package."""
    command = [sys.executable, "-I", "-S", "-c", _LIST_WHAT_GETS_LOADED, str(package.parent)]
    done = subprocess.run(
        [*command, *modules_of(package)], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    loaded: dict[str, str | None] = json.loads(done.stdout)
    return loaded


def unwanted(loaded: dict[str, str | None], package: Path) -> list[str]:
    """Which of these are infrastructure, or neither the package's nor the standard library's."""
    homes = (package, Path(json.__file__).parents[1])
    roots = sys.stdlib_module_names - DENIED | {package.name}
    return sorted(
        name
        for name, file in loaded.items()
        if name.partition(".")[0] not in roots
        or (file is not None and not any(map(Path(file).is_relative_to, homes)))
    )


def test_clean_interpreter_without_site_packages_imports_the_package() -> None:
    loaded = loaded_with(PACKAGE)
    assert "fetcher_engine.memory" in loaded
    assert sorted(m for m in loaded if m.startswith("fetcher_engine")) == modules_of(PACKAGE)
    assert unwanted(loaded, PACKAGE) == []


def test_what_a_module_brings_along_is_found(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("import foreign, socket, json")
    (tmp_path / "foreign.py").write_text("")
    assert modules_of(package) == ["sample", "sample.inner"]
    found = unwanted(loaded_with(package), package)
    assert {"foreign", "socket", "selectors"} <= set(found)
    assert "json" not in found
