"""A setting as its documents show it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from fetcher.settings import Role, Settings
from fetcher.settings.fields import Allowed, Example, NoEffect, ReadBy, SettingsGroup, Unset

Mark = TypeVar("Mark")

NOT_A_VARIABLE = frozenset({"datasource_groups"})

TYPE_NAMES: dict[type, str] = {
    bool: "boolean",
    int: "whole number",
    float: "number",
    str: "text",
    datetime: "time",
    Path: "path",
    SecretStr: "secret",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSetting:
    """``default`` and ``allowed`` are Markdown; ``plain_default`` stands in an example."""

    name: str
    type_name: str
    default: str
    plain_default: str
    allowed: str
    role: Role
    meaning: str
    example: str | None
    has_effect: bool

    def is_read_by(self, role: Role) -> bool:
        return Role.ALL in (role, self.role) or role is self.role


def settings_of(group: type[SettingsGroup]) -> Iterator[DescribedSetting]:
    """In the group's order."""
    for name in group.model_fields:
        if name not in NOT_A_VARIABLE:
            yield described(name, Settings.model_fields[name])


def described(name: str, field: FieldInfo) -> DescribedSetting:
    """Raise ValueError for a field without a description."""
    if not field.description:
        raise ValueError(f"{name}: Field(description=…) says what the setting does")
    unset = _mark(field, Unset)
    allowed = _mark(field, Allowed)
    read_by = _mark(field, ReadBy)
    in_force = _mark(field, Example)
    return DescribedSetting(
        name=name.upper(),
        type_name=_type_name(field.annotation),
        default=unset.text if unset else _markdown_default(field.default),
        plain_default=_plain_default(field.default),
        allowed=allowed.text if allowed else _bounds(field),
        role=read_by.role if read_by else Role.ALL,
        meaning=field.description,
        example=in_force.value if in_force else None,
        has_effect=_mark(field, NoEffect) is None,
    )


def _mark(field: FieldInfo, kind: type[Mark]) -> Mark | None:
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def _type_name(annotation: Any) -> str:
    kinds = [kind for kind in _kinds(annotation) if kind is not type(None)]
    [kind] = kinds
    if get_origin(kind) is Literal or issubclass(kind, StrEnum):
        return "word"
    return TYPE_NAMES[kind]


def _kinds(annotation: Any) -> list[Any]:
    """The types of a union, without what Annotated puts around them."""
    if hasattr(annotation, "__metadata__"):
        return _kinds(annotation.__origin__)
    if get_origin(annotation) is Literal or isinstance(annotation, type):
        return [annotation]
    return [kind for part in get_args(annotation) for kind in _kinds(part)]


def _plain_default(default: object) -> str:
    if default is None or isinstance(default, SecretStr):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _markdown_default(default: object) -> str:
    text = _plain_default(default)
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return text if is_number or not text else f"`{text}`"


def _bounds(field: FieldInfo) -> str:
    lowest = highest = ""
    for limit in field.metadata:
        match limit:
            case Ge(ge=value):
                lowest = f"at least {value}"
            case Gt(gt=value):
                lowest = f"above {value}"
            case Le(le=value):
                highest = f"at most {value}"
            case Lt(lt=value):
                highest = f"below {value}"
    words = next(
        (get_args(k) for k in _kinds(field.annotation) if get_origin(k) is Literal),
        (),
    )
    return ", ".join(part for part in (lowest, highest, *(f"`{word}`" for word in words)) if part)
