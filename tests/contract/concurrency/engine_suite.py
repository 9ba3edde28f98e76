"""The Engine's tests of its concurrency port, imported where they lie.

Their package is named ``tests`` as ours is, so it gets another name here.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

PACKAGE: Final = "engine_tests"
_FOLDER: Final = Path(__file__).parents[3] / "engine" / "tests"


def engine_module(name: str) -> ModuleType:
    """A module of the Engine's suite."""
    if PACKAGE not in sys.modules:
        pytest.register_assert_rewrite(PACKAGE)
        spec = importlib.util.spec_from_file_location(
            PACKAGE, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
        )
        assert spec is not None
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{PACKAGE}.{name}")


def engine_test_modules() -> list[str]:
    """The names of those that test the port, and not the README's example alone."""
    names = [path.stem for path in sorted(_FOLDER.glob("test_concurrency_port*.py"))]
    return [*(name for name in names if not name.endswith("_asyncio")), "test_handoff"]
