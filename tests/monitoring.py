"""The alert rules and the board of config/, as the tests read them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[1]
RULES = ROOT / "config" / "prometheus" / "fetcher.rules.yml"
RULE_TESTS = ROOT / "config" / "prometheus" / "tests"
BOARD = ROOT / "config" / "grafana" / "fetcher.json"
RUNBOOKS = ROOT / "docs" / "runbooks.md"

GIVEN_BY_PROMETHEUS: Final = frozenset({"up"})
_WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset"})
_LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    name: str
    expression: str
    members: dict[str, str]
    """``severity``, ``summary``, ``description``, ``runbook_url``."""


@cache
def alerts() -> list[Alert]:
    """Read by their form, which is always the same; promtool judges the YAML."""
    blocks = RULES.read_text(encoding="utf-8").split("      - alert: ")[1:]
    return [_alert(block) for block in blocks]


def _alert(block: str) -> Alert:
    name, rest = block.split("\n", 1)
    expression = re.search(
        r"^        expr: (?:>-\n((?: {10}.*\n)+)|'?(.*?)'?\n)", rest, re.MULTILINE
    )
    assert expression is not None, name
    members = re.findall(r"^ {10}(\w+): '?(.*?)'?$", rest.split("        labels:")[1], re.MULTILINE)
    folded = " ".join((expression[1] or expression[2]).split())
    return Alert(name=name, expression=folded, members=dict(members))


def board() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    return read


def board_expressions() -> Iterator[tuple[str, str]]:
    """Title of the panel and expression, with the board's variables filled in."""
    for panel in board()["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
            yield panel["title"], expression


def metrics_in(expression: str) -> set[str]:
    """The series that an expression asks for."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = _LISTS.sub(" ", bare)
    names = re.findall(r"(?<![\w.])([a-zA-Z_]\w*)\b(?!\s*\()", bare)
    return set(names) - _WORDS
