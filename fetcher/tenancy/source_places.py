"""Databases of other services of a tenant, as internal sources (spec configuration 12.2)."""

from enum import Enum, auto
from typing import Final
from urllib.parse import parse_qs

from fetcher.domain.connections import SourceType
from fetcher.domain.json_values import JsonObject
from fetcher.domain.tenants import SourcePlace, TenantNotConfigured
from fetcher.domain.tls_modes import tls_mode_problem
from fetcher.tenancy.answer_members import (
    MAX_PEM,
    any_text,
    flag,
    member,
    one_line,
    required_port,
    required_text,
    text,
)
from fetcher.tenancy.mongo_members import SRV, database_name, mongo_uri, uri_parts


class Isolation(Enum):
    OWN_DATABASE = auto()
    SHARED = auto()
    """A schema of a database that tenants share, or a mode that nobody knows."""


_ENCRYPTED: Final = "enable"
_UNVERIFIED: Final = "insecure"
_TRUE: Final = "true"


def source_place(module: JsonObject, *, isolation: Isolation) -> SourcePlace:
    """``postgresql`` before ``mongodb``.

    Raise TenantNotConfigured for what is missing or cannot be; TenantAnswerUnreadable for members
    of other types.
    """
    if (postgresql := member(module, "postgresql")) is not None:
        return _postgresql(postgresql, isolation)
    if (mongodb := member(module, "mongodb")) is not None:
        return _mongodb(mongodb, isolation)
    raise TenantNotConfigured("the module has neither postgresql nor mongodb")


def _postgresql(told: JsonObject, isolation: Isolation) -> SourcePlace:
    user = text(told, "username")
    if isolation is Isolation.SHARED and not user:
        # there the server tells tenants apart by their users' rights
        raise TenantNotConfigured("postgresql.username is missing, in a shared database")
    mode = text(told, "sslmode")
    if mode and tls_mode_problem(SourceType.POSTGRESQL, mode):
        raise TenantNotConfigured("postgresql.sslmode is none of PostgreSQL's")
    return SourcePlace(
        type=SourceType.POSTGRESQL,
        host=required_text(told, "host", "postgresql"),
        port=required_port(told, "postgresql"),
        database=required_text(told, "database", "postgresql"),
        user=user,
        password=any_text(told, "password"),
        schema=text(told, "schema"),
        ssl_mode=mode,
        ca=_pem_or_path(told, "sslrootcert"),
        cert=_pem_or_path(told, "sslcert"),
        key=_pem_or_path(told, "sslkey"),
    )


def _mongodb(told: JsonObject, isolation: Isolation) -> SourcePlace:
    if isolation is Isolation.SHARED:
        raise TenantNotConfigured("mongodb in a database that tenants share is refused")
    mode, options = _mongodb_tls(told)
    return SourcePlace(
        type=SourceType.MONGODB,
        host=required_text(told, "host", "mongodb"),
        port=required_port(told, "mongodb"),
        database=database_name(told, "mongodb"),
        user=text(told, "username"),
        password=any_text(told, "password"),
        ssl_mode=mode,
        options=options,
        ca=_pem_or_path(told, "tlsCAFile"),
        cert=_pem_or_path(told, "tlsCertFile"),
        key=_pem_or_path(told, "tlsKeyFile"),
    )


def _mongodb_tls(told: JsonObject) -> tuple[str, dict[str, str]]:
    """The mode, and the options of the connection. With ``tls`` the fields decide alone; else what
    an address says stands before them."""
    is_direct, auth_source = flag(told, "directConnection"), text(told, "authSource")
    skips_verify = flag(told, "tlsSkipVerify")
    uri = mongo_uri(told, "mongodb")
    if flag(told, "tls"):
        mode = _UNVERIFIED if skips_verify else _ENCRYPTED
    elif uri:
        said = _uri_options(uri)
        mode = _mode_of(said, is_srv=uri_parts(uri).scheme == SRV)
        if "directconnection" in said:
            is_direct = said["directconnection"] == _TRUE
        auth_source = one_line(said.get("authsource", auth_source))
    else:
        mode = ""
    options = {"authSource": auth_source} if auth_source else {}
    return mode, options | ({"directConnection": _TRUE} if is_direct else {})


def _mode_of(said: dict[str, str], *, is_srv: bool) -> str:
    asked = said.get("tls", said.get("ssl", _TRUE if is_srv else ""))
    if asked != _TRUE:
        return ""
    return _UNVERIFIED if said.get("tlsinsecure") == _TRUE else _ENCRYPTED


def _uri_options(uri: str) -> dict[str, str]:
    """By name in lower case: MongoDB tells no case apart in them. The first of a name counts."""
    pairs = parse_qs(uri_parts(uri).query, max_num_fields=None).items()
    return {name.lower(): values[0] for name, values in pairs}


def _pem_or_path(told: JsonObject, name: str) -> str:
    return any_text(told, name, max_chars=MAX_PEM)
