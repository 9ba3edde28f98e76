"""Finds calls that print what may be markup, or an order to the terminal."""

import ast
from collections.abc import Iterator

PRINTERS = frozenset({"print", "echo", "secho"})
OURS = frozenset({"write_bytes"})
"""Of fetcher.cli.output: a path has a method of that name."""
RICH = frozenset({"Table", "Panel", "Markdown", "Tree", "Rule", "Columns", "Syntax", "Prompt"})
FILLERS = frozenset({"add_row", "add_column", "add_task"})
STREAMS = frozenset({"stdout", "stderr"})


def careless_calls(module: ast.Module) -> list[ast.Call]:
    """Everything that shows a text which is neither written in the code nor made a ``cell``."""
    judged = _Judged(module)
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    return [call for call in calls if judged.is_careless(call)]


class _Judged:
    def __init__(self, module: ast.Module) -> None:
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(node.value)

    def is_careless(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Name):
            return call.func.id in PRINTERS | RICH | OURS
        if not isinstance(call.func, ast.Attribute):
            return False
        owners = set(_names(call.func.value))
        if any(name.strip("_").lower() == "console" for name in owners):
            return call.func.attr != "print" or not all(map(self._is_plain, call.args))
        if call.func.attr == "write" and owners & STREAMS:
            return True
        texts = [each.value for each in call.keywords if each.arg == "description"]
        texts += call.args if call.func.attr in FILLERS else []
        return call.func.attr in PRINTERS | RICH or not all(map(self._is_plain, texts))

    def _is_plain(self, value: ast.expr) -> bool:
        match value:
            case ast.Constant() | ast.Call(func=ast.Name(id="cell" | "listing")):
                return True
            case ast.Attribute(value=inner, attr="plain"):
                return self._is_plain(inner)
            case ast.Tuple(elts=parts):
                return all(map(self._is_plain, parts))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="Text"), attr="assemble"), args=parts
            ):
                return all(map(self._is_plain, parts))
            case ast.Name(id=name):
                made = self._assigned.get(name, [])
                return bool(made) and all(map(self._is_plain, made))
            case _:
                return False


def _names(value: ast.expr) -> Iterator[str]:
    """``a``, ``b`` and ``c`` of ``a.b().c``."""
    for node in ast.walk(value):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
