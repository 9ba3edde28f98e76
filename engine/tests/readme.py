"""The README's examples, as the tests use them."""

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    """What stands between the fences of one language, in the README's order."""
    fence = rf"^```{language}\n(.*?)^```$"
    return re.findall(fence, README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def python_blocks() -> list[str]:
    """The Python examples in their order."""
    return blocks("python")


def csv_program() -> str:
    """The first complete program: it extracts a folder of CSV files."""
    return python_blocks()[0]


def csv_commands() -> str:
    """The shell commands that make a folder of CSV files and run the program on it."""
    return next(block for block in blocks("sh") if "extract.py" in block)


def csv_output() -> str:
    """What the program prints."""
    return blocks("json")[0]


def asyncio_concurrency() -> Any:
    """An instance of the README's port for asyncio."""
    block = next(b for b in python_blocks() if "class AsyncioConcurrency" in b)
    namespace: dict[str, Any] = {}
    exec(compile(block, str(README), "exec"), namespace)  # noqa: S102 - our own README
    return namespace["AsyncioConcurrency"]()
