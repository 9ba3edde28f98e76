"""No text of an error decides anything (spec worker-and-events 7.5 does; voided by issue 6).

The reference classifies failures by words in their texts. Here the source code is searched for an
exception's text in a comparison or a search.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FETCHER = Path(__file__).parents[2] / "fetcher"
JUDGED = ("actors", "commands", "queries", "adapters", "bootstrap", "api")

_SEARCHES = frozenset(
    {"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall"}
)
_TEXTS = frozenset({"args", "message", "strerror", "reply_text", "text"})


def decisions_by_text(source: str) -> list[int]:
    """Lines where what an ``except … as name`` caught is compared or searched by its text."""
    return sorted(
        {
            line
            for handler in ast.walk(ast.parse(source))
            if isinstance(handler, ast.ExceptHandler) and handler.name is not None
            for line in _decisions(handler, handler.name)
        }
    )


def _decisions(handler: ast.ExceptHandler, caught: str) -> Iterator[int]:
    texts: set[str] = set()
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Assign) and _is_text(node.value, caught, texts):
            texts |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Compare):
            operands: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            operands = [node.func.value, *node.args] if node.func.attr in _SEARCHES else []
        elif isinstance(node, ast.Match):
            operands = [node.subject]
        else:
            continue
        if any(_is_text(operand, caught, texts) for operand in operands):
            yield node.lineno


def _is_text(expression: ast.expr, caught: str, texts: set[str]) -> bool:
    for node in ast.walk(expression):
        match node:
            case ast.Name(id=name) if name in texts:
                return True
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                if name == caught:
                    return True
            case ast.FormattedValue(value=ast.Name(id=name)) if name == caught:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if name == caught and attribute in _TEXTS:
                    return True
    return False


def _modules() -> list[Path]:
    return [path for part in JUDGED for path in sorted((FETCHER / part).rglob("*.py"))]


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(FETCHER)))
def test_no_text_of_an_error_decides(path: Path) -> None:
    assert decisions_by_text(path.read_text()) == []


@pytest.mark.parametrize(
    "decision",
    [
        'if "timeout" in str(error): pass',
        'if str(error) == "gone": pass',
        'if f"{error}".startswith("FET-"): pass',
        'if error.args[0] == "x": pass',
        'if re.search("FET-", repr(error)): pass',
        'if "x" in error.message.lower(): pass',
        "text = str(error).lower()\n    if 'x' in text: pass",
        "match str(error):\n        case 'x': pass",
    ],
)
def test_such_a_decision_would_be_found(decision: str) -> None:
    source = f"try:\n    f()\nexcept E as error:\n    {decision}\n"
    assert len(decisions_by_text(source)) == 1


@pytest.mark.parametrize(
    "use",
    [
        "log.warning('x', why=str(error))",
        "if error.code == 404: pass",
        "if isinstance(error, KeyError): pass",
        "failure = translate(error)",
    ],
)
def test_types_codes_and_logs_are_no_such_decision(use: str) -> None:
    assert decisions_by_text(f"try:\n    f()\nexcept E as error:\n    {use}\n") == []
