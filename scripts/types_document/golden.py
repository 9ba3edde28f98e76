"""The golden matrix: values of every type, and their JSON under each option (tests/golden/types).

Expected JSON is compared value by value, numbers digit by digit.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fetcher.domain.jobs import JobOptions

FOLDER: Final = Path(__file__).parents[2] / "tests" / "golden" / "types"

OPTION_SETS: Final = {
    "json": JobOptions(),
    "natural": JobOptions(values="natural"),
    "bigint": JobOptions(bigint="string"),
    "decimals": JobOptions(decimals="number"),
}
"""By the member of a row that says what a value becomes under it; ``json`` is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenValue:
    """One value of a column that is ``declared`` so.

    ``value`` is how it is written in the database's own language; ``sent`` holds, for databases
    that tests only imitate, what the server or its driver hands over for it. ``expected`` is JSON
    text by option set.
    """

    type: str
    declared: str
    value: str
    expected: dict[str, str]
    sent: dict[str, Any]
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenType:
    name: str
    values: tuple[GoldenValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A database's types; ``setup`` makes what their declarations need."""

    types: tuple[GoldenType, ...]
    setup: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[GoldenValue, ...]:
        return tuple(value for each in self.types for value in each.values)


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number by its digits: equal means written alike."""

    text: str


def matrix(database: str) -> Matrix:
    """Raise ValueError for members that nobody reads."""
    with (FOLDER / f"{database}.toml").open("rb") as file:
        found = tomllib.load(file)
    types = [
        GoldenType(
            name=each["name"], values=tuple(_value(each["name"], value) for value in each["values"])
        )
        for each in found.pop("type")
    ]
    setup = tuple(found.pop("setup", ()))
    if found:
        raise ValueError(f"unknown members: {sorted(found)}")
    return Matrix(types=tuple(types), setup=setup)


def exact_json(text: str | bytes) -> Any:
    """Strict JSON with its numbers as :class:`Number`."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_refuse)


def _value(name: str, row: dict[str, Any]) -> GoldenValue:
    left = dict(row)
    text = left.pop("json")
    value = GoldenValue(
        type=name,
        declared=left.pop("as", name),
        value=left.pop("sql", "") or left.pop("bson", ""),
        expected={key: left.pop(key, text) for key in OPTION_SETS if key != "json"}
        | {"json": text},
        is_shown=left.pop("shown", True),
        sent=left.pop("sent", {}),
    )
    if left:
        raise ValueError(f"unknown members: {name}: {sorted(left)}")
    return value


def _refuse(constant: str) -> object:
    raise ValueError(f"not JSON: {constant}")
