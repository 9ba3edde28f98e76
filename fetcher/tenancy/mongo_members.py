"""What the Tenant Manager's ``mongodb`` objects have in common, be it our database or a source."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from fetcher.domain.json_values import JsonObject
from fetcher.domain.tenants import TenantNotConfigured
from fetcher.tenancy.answer_members import text

SRV: Final = "mongodb+srv"
# what MongoDB forbids on any system (its manual, "Naming Restrictions")
_DATABASE_NAME = re.compile(r'[^/\\. "$*<>:|?\x00-\x1f\x7f]{1,63}')


def database_name(told: JsonObject, where: str) -> str:
    """As it is told, never in lower case. Raise TenantNotConfigured for what is none."""
    name = text(told, "database")
    if not _DATABASE_NAME.fullmatch(name):
        raise TenantNotConfigured(f"{where}.database must be a database's name")
    return name


def mongo_uri(told: JsonObject, where: str) -> str:
    """Empty where there is none. Raise TenantNotConfigured for an address of another kind."""
    uri = text(told, "uri")
    if uri and uri_parts(uri).scheme not in ("mongodb", SRV):
        raise TenantNotConfigured(f"{where}.uri must begin with mongodb:// or mongodb+srv://")
    return uri


def uri_parts(uri: str) -> SplitResult:
    """Those of an empty one where it cannot be taken apart."""
    try:
        return urlsplit(uri)
    except ValueError:
        return urlsplit("")


def uri_secrets(uri: str) -> Iterator[str]:
    """The whole, since options may hold secrets too, and the password in both its forms."""
    if not uri:
        return
    yield uri
    credentials, _, _ = uri_parts(uri).netloc.rpartition("@")
    _, _, password = credentials.partition(":")
    yield password
    yield unquote(password)
