"""How a connection is refused: with every field that is wrong, and one code (spec rest-api 7.3)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from fetcher.domain.errors import FetcherError
from fetcher.domain.internal_sources import INTERNAL_SOURCES

DOMAIN: Final = "connection"
"""The ``entityType`` of what only the whole record shows; its fields are in snake case (Wire)."""

_SENT_AS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "config_name": "configName",
        "database_name": "databaseName",
        "username": "userName",
        "password_encrypted": "password",
    }
)


def refuse_missing(fields: Mapping[str, str], *, entity_type: str | None = None) -> None:
    """Raise ``FET-0402`` where there are any."""
    _refuse("FET-0402", "Missing Fields in Request", "missing", fields, entity_type)


def refuse_invalid(fields: Mapping[str, str], *, entity_type: str | None = None) -> None:
    """Raise ``FET-0001`` where there are any."""
    _refuse("FET-0001", "Bad Request", "invalid", fields, entity_type)


def refuse_taken(config_name: str) -> NoReturn:
    """Raise ``FET-1002``."""
    told = f"the config name {config_name} is already used"
    if config_name in INTERNAL_SOURCES:
        told = f"the config name {config_name} is kept for a source that the operator configures"
    raise FetcherError("FET-1002", "Conflict", told)


def _refuse(
    code: str, title: str, fault: str, fields: Mapping[str, str], entity_type: str | None
) -> None:
    """The message names the members as they are sent, whatever the keys of ``fields`` are."""
    if fields:
        named = ", ".join(_SENT_AS.get(name, name) for name in fields)
        raise FetcherError(code, title, f"{fault}: {named}", fields=fields, entity_type=entity_type)
