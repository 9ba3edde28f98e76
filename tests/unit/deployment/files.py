"""The files of a deployment as the tests read them."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]  # it has no stubs

from scripts.stack_secrets import made

ROOT: Final = Path(__file__).parents[3]
COMPOSE: Final = ROOT / "config" / "compose"
CHART: Final = ROOT / "config" / "helm" / "fetcher"
KIND: Final = ROOT / "config" / "kind"

_VARIABLE: Final = re.compile(r"\$\$|\$\{([A-Z_]+):\?run make up\}|\$")


def documents(text: str) -> list[Any]:
    """Every document of a YAML text that is not empty; a key that stands twice is refused."""
    read = yaml.load_all(text, Loader=_Strict)  # a safe loader
    return [found for found in read if found is not None]


class _Strict(yaml.CSafeLoader):  # type: ignore[misc]
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"{node.start_mark}: {twice}"
        return dict(super().construct_mapping(node, deep))


@cache
def secrets() -> Mapping[str, str]:
    return made()


def interpolated(text: str) -> str:
    """What Compose makes of a text; ``$`` alone and other forms are not used."""

    def value(found: re.Match[str]) -> str:
        assert found[0] != "$", text
        return "$" if found[0] == "$$" else secrets()[found[1]]

    return _VARIABLE.sub(value, text)


@cache
def compose() -> dict[str, Any]:
    (stack,) = documents(interpolated((COMPOSE / "compose.yaml").read_text(encoding="utf-8")))
    assert isinstance(stack, dict)
    return stack
