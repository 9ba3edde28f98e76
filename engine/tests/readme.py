"""The README's examples, as the tests use them."""

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"


def python_blocks() -> list[str]:
    """The Python examples in their order."""
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def asyncio_concurrency() -> Any:
    """An instance of the README's port for asyncio."""
    block = next(b for b in python_blocks() if "class AsyncioConcurrency" in b)
    namespace: dict[str, Any] = {}
    exec(compile(block, str(README), "exec"), namespace)  # noqa: S102 - our own README
    return namespace["AsyncioConcurrency"]()
