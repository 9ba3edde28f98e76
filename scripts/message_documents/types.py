"""A TypedDict as JSON Schema (draft 7, which AsyncAPI 3.0 reads)."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from inspect import getdoc
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema = dict[str, Any]

_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    NoneType: {"type": "null"},
    object: {},
}


def schema_of(kind: Any) -> Schema:
    """Raise TypeError for a type that no message has."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typeddict(kind):
        return _object(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    make = _GENERIC.get(origin)
    if make is None:
        message = f"no schema for {kind}"
        raise TypeError(message)
    return make(*arguments)


def _map(_: Any, values: Any) -> Schema:
    schema = schema_of(values)
    return {"type": "object"} | ({"additionalProperties": schema} if schema else {})


def _list(item: Any, *_: Any) -> Schema:
    return {"type": "array", "items": schema_of(item)}


def _constant(value: object) -> Schema:
    return {"const": value}


def _union(*kinds: Any) -> Schema:
    options = [schema_of(each) for each in kinds]
    if all(set(option) == {"type"} for option in options):
        names = list(dict.fromkeys(option["type"] for option in options))
        return {"type": names if len(names) > 1 else names[0]}
    return {"anyOf": options}


_GENERIC: Mapping[object, Callable[..., Schema]] = {
    NotRequired: schema_of,
    Literal: _constant,
    Union: _union,
    UnionType: _union,
    tuple: _list,
    Sequence: _list,
    Mapping: _map,
}


def _object(kind: Any) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": " ".join((getdoc(kind) or "").split()).replace("``", "`"),
        "properties": {name: schema_of(hint) for name, hint in hints.items()},
        "required": sorted(name for name in hints if get_origin(hints[name]) is not NotRequired),
    }
