"""The JSON values that Fetcher carries: numbers keep every digit."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

JsonScalar: TypeAlias = str | int | Decimal | bool | None
"""A number without fraction or exponent is an ``int``, any other number a ``Decimal``."""

JsonValue: TypeAlias = "JsonScalar | list[JsonValue] | Mapping[str, JsonValue]"
JsonObject: TypeAlias = Mapping[str, JsonValue]


def holds_nul_key(value: JsonValue) -> bool:
    """Whether a name anywhere in it has a NUL character, which BSON cannot say."""
    if isinstance(value, Mapping):
        return any("\0" in key or holds_nul_key(below) for key, below in value.items())
    return isinstance(value, list) and any(holds_nul_key(below) for below in value)
