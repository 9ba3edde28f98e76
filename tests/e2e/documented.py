"""The blocks of code of a page: what a test runs is what a reader copies."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.servers.processes import INHERITED

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+) ([\w.]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


_SHELL = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"```(?:sh|bash|shell|console)(?: (?P<name>[^\n]+))?\n",
    re.MULTILINE,
)


class ShellBlock(NamedTuple):
    """A block of commands: a test runs it by its name, or a comment says why none does."""

    name: str | None
    reason: str | None


def shell_blocks(text: str) -> list[ShellBlock]:
    return [ShellBlock(found["name"], found["reason"]) for found in _SHELL.finditer(text)]


def blocks(page: str) -> dict[str, str]:
    """Name to text, of the blocks whose first line names them: ``sh keys``, ``python x.py``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = [(name, code) for _, name, code in _BLOCK.findall(text)]
    assert len(dict(found)) == len(found), "two blocks have one name"
    return dict(found)


def shell_text(page: str, name: str) -> str:
    """The block of that name. Raise KeyError."""
    return blocks(page)[name]


def unnamed_blocks(page: str) -> int:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.count("```") - 2 * len(blocks(page))


def run_shell(
    script: str, *, environment: Mapping[str, str], folder: Path
) -> "subprocess.CompletedProcess[str]":
    """The script in ``sh -e``, where ``fetcher`` is the one under test; at most five minutes."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    command = f'set -e\nfetcher() {{ "{sys.executable}" -m fetcher "$@"; }}\n{script}'
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"} | dict(environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
