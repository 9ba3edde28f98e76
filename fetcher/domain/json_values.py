"""The JSON values that Fetcher carries: numbers keep every digit."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

JsonScalar: TypeAlias = str | int | Decimal | bool | None
"""A number without fraction or exponent is an ``int``, any other number a ``Decimal``."""

JsonValue: TypeAlias = "JsonScalar | list[JsonValue] | Mapping[str, JsonValue]"
JsonObject: TypeAlias = Mapping[str, JsonValue]
