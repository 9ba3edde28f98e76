"""Plain data as YAML in block style; every text is quoted as in JSON, which YAML 1.2 reads."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def as_yaml(value: Any) -> str:
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            key = name if _is_plain(name) else _scalar(name)
            yield from _entry(f"{key}:", each)
    elif isinstance(value, list) and value:
        for each in value:
            yield from _entry("-", each)
    else:
        yield _scalar(value)


def _entry(head: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield head
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{head} {_scalar(value)}"


def _is_plain(name: str) -> bool:
    return _PLAIN_KEY.fullmatch(name) is not None and name.lower() not in _WORDS


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
