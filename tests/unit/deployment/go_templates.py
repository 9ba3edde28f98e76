"""The part of Go's templates, with Helm's functions, that our chart is written in.

Whatever is not listed here is refused, and so is a value that is not there: Helm would print
``<no value>``. Trimming, scopes of ``with`` and truth are as in Go.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml  # type: ignore[import-untyped]  # it has no stubs

_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\d+|\.[\w.]*|\w+|[()|])')


class TemplateError(Exception):
    pass


@dataclass(slots=True)
class Block:
    """``word`` is ``text``, ``show``, ``if``, ``with`` or ``define``."""

    word: str
    argument: str = ""
    body: "list[Block]" = field(default_factory=list)
    otherwise: "list[Block]" = field(default_factory=list)


def parsed(source: str) -> list[Block]:
    root = Block("root")
    stack: list[tuple[Block, list[Block]]] = [(root, root.body)]
    for kind, text in _pieces(source):
        body = stack[-1][1]
        word, _, rest = text.partition(" ")
        if kind == "text":
            body.append(Block("text", text))
        elif word in ("if", "with", "define"):
            body.append(Block(word, rest.strip()))
            stack.append((body[-1], body[-1].body))
        elif text == "else" and stack[-1][0].word in ("if", "with"):
            stack[-1] = (stack[-1][0], stack[-1][0].otherwise)
        elif text == "end" and len(stack) > 1:
            stack.pop()
        elif word in ("else", "end", "range", "template", "block"):
            raise TemplateError(text)
        else:
            body.append(Block("show", text))
    if len(stack) != 1:
        raise TemplateError(f"{stack[-1][0].word} {stack[-1][0].argument}: no end")
    return root.body


def _pieces(source: str) -> Iterator[tuple[str, str]]:
    position, trim = 0, False
    for found in re.finditer(r"\{\{(- )?(.*?)( -)?\}\}", source, re.DOTALL):
        text = source[position : found.start()]
        text = text.lstrip() if trim else text
        yield "text", text.rstrip() if found[1] else text
        yield "action", found[2].strip()
        position, trim = found.end(), bool(found[3])
    rest = source[position:]
    yield "text", rest.lstrip() if trim else rest


class Renderer:
    def __init__(self, values: Mapping[str, Any], chart: Mapping[str, Any], release: str) -> None:
        self._root = {
            "Values": values,
            "Chart": {"Name": chart["name"], "Version": chart["version"]}
            | {"AppVersion": chart["appVersion"]},
            "Release": {"Name": release, "Service": "Helm", "Namespace": "apps"},
        }
        self._defined: dict[str, list[Block]] = {}

    def define(self, source: str) -> None:
        for block in parsed(source):
            if block.word == "define":
                self._defined[json.loads(block.argument)] = block.body
            elif block.word != "text" or block.argument.strip():
                raise TemplateError(f"outside of a definition: {block.argument}")

    def render(self, source: str) -> str:
        return self._shown(parsed(source), self._root)

    def _shown(self, blocks: Sequence[Block], dot: Any) -> str:
        return "".join(self._one(block, dot) for block in blocks)

    def _one(self, block: Block, dot: Any) -> str:
        if block.word == "text":
            return block.argument
        value = self._pipeline(block.argument, dot)
        if block.word == "if":
            return self._shown(block.body if value else block.otherwise, dot)
        if block.word == "with":
            return self._shown(block.body, value) if value else self._shown(block.otherwise, dot)
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int):
            raise TemplateError(f"{block.argument}: not a text or number: {value!r}")
        return str(value)

    def _pipeline(self, text: str, dot: Any) -> Any:
        tokens = _tokens(text)
        value = self._commands(tokens, dot)
        if tokens:
            raise TemplateError(text)
        return value

    def _commands(self, tokens: list[str], dot: Any) -> Any:
        value = self._command(tokens, dot, ())
        while tokens and tokens[0] == "|":
            tokens.pop(0)
            value = self._command(tokens, dot, (value,))
        return value

    def _command(self, tokens: list[str], dot: Any, piped: tuple[Any, ...]) -> Any:
        head = tokens.pop(0)
        if not head[0].isalpha():
            if piped or (tokens and tokens[0] not in ("|", ")")):
                raise TemplateError(f"{head} takes no argument")
            return self._operand(head, tokens, dot)
        arguments = []
        while tokens and tokens[0] not in ("|", ")"):
            arguments.append(self._operand(tokens.pop(0), tokens, dot))
        arguments += piped
        if head == "include":
            name, scope = arguments
            return self._shown(self._defined[name], scope)
        if head not in FUNCTIONS:
            raise TemplateError(f"no such function: {head}")
        return FUNCTIONS[head](*arguments)

    def _operand(self, token: str, tokens: list[str], dot: Any) -> Any:
        if token == "(":
            value = self._commands(tokens, dot)
            if not tokens or tokens.pop(0) != ")":
                raise TemplateError("no closing parenthesis")
            return value
        if token[0] == '"':
            return json.loads(token)
        if token.isdigit():
            return int(token)
        if not token.startswith("."):
            raise TemplateError(f"no such operand: {token}")
        value = dot
        for name in token.split(".")[1:]:
            if name:
                if not isinstance(value, Mapping) or name not in value:
                    raise TemplateError(f"{token}: there is no {name}")
                value = value[name]
        return value


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise TemplateError(text)
        found.append(token[1])
        position = token.end()
    return found


def _to_yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=False, allow_unicode=True)).rstrip("\n")


def _nindent(spaces: int, text: str) -> str:
    return "\n" + "\n".join(" " * spaces + line for line in text.split("\n"))


def _printf(form: str, *values: str) -> str:
    assert form.replace("%s", "").count("%") == 0
    return form % values


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda *numbers: sum(numbers),
    "default": lambda default, value: value or default,
    "int": int,
    "nindent": _nindent,
    "not": lambda value: not value,
    "printf": _printf,
    "quote": lambda value: json.dumps(str(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": _to_yaml,
}
