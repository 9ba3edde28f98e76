"""Regular expressions mean the same in every Python that is supported.

Before 3.11.5, which Debian 12 does not have, a group that is repeated possessively matches wrongly
or ends the process (gh-106052, gh-101955); an atomic group is the same mechanism.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("fetcher", "engine/fetcher_engine")

# A quantifier that begins a constant stands behind a group that another constant has ended; "()" is
# no group but two characters of a list.
POSSESSIVE_GROUP = re.compile(r"(?:^|(?<![\\(])\))(?:[*+?]|\{[0-9]*,?[0-9]*\})\+|\(\?>")


def constants(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value
            yield node.lineno, text if isinstance(text, str) else text.decode("latin-1")


def test_no_group_is_repeated_possessively() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in constants(path.read_text(encoding="utf-8"))
        if POSSESSIVE_GROUP.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(a)++", "(a)?+", "(a){2,3}+", "{0,9}+", "(?>a)"])
def test_what_counts_as_one(pattern: str) -> None:
    assert POSSESSIVE_GROUP.search(pattern)


@pytest.mark.parametrize("pattern", ["[ab]*+", "a++", r"\)++", "(a)+", "(a)*(b)+", "[0-9]?+"])
def test_what_does_not(pattern: str) -> None:
    assert not POSSESSIVE_GROUP.search(pattern)
