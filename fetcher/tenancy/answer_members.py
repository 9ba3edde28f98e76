"""Members of the Tenant Manager's objects, read as what they must be.

``null`` is as good as none. A value of another type, or one too long to be meant, makes the whole
answer unreadable; what is missing or cannot be is told by the member's path.
"""

import re
from typing import Final

from fetcher.domain.json_values import JsonObject
from fetcher.domain.tenants import TenantAnswerUnreadable, TenantNotConfigured

MAX_TEXT: Final = 4096
MAX_PEM: Final = 64 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def member(told: JsonObject, name: str) -> JsonObject | None:
    value = told.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise TenantAnswerUnreadable


def text(told: JsonObject, name: str) -> str:
    """On one line; empty where there is none."""
    return one_line(any_text(told, name))


def one_line(value: str) -> str:
    if _CONTROL.search(value):
        raise TenantAnswerUnreadable
    return value


def any_text(told: JsonObject, name: str, *, max_chars: int = MAX_TEXT) -> str:
    """Of any characters, as a password or a certificate may have."""
    value = told.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > max_chars:
        raise TenantAnswerUnreadable
    return value


def flag(told: JsonObject, name: str) -> bool | None:
    value = told.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise TenantAnswerUnreadable


def whole(told: JsonObject, name: str) -> int:
    """0 where there is none."""
    value = told.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TenantAnswerUnreadable
    return value


def required_text(told: JsonObject, name: str, where: str) -> str:
    """Raise TenantNotConfigured where it is missing or blank."""
    value = text(told, name)
    if not value.strip():
        raise TenantNotConfigured(f"{where}.{name} is missing")
    return value


def required_port(told: JsonObject, where: str) -> int:
    """Raise TenantNotConfigured for what is none."""
    port = whole(told, "port")
    if port not in range(1, 65536):
        raise TenantNotConfigured(f"{where}.port must be a port number")
    return port
