"""From a tenant's place to the address and options of a client (spec configuration 11.7)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from fetcher.adapters.tenant_files import tenant_file, tenant_trust_roots
from fetcher.adapters.tenant_hosts import PORTS, is_host, is_ip6
from fetcher.domain.tenants import MongoPlace, TenantNotConfigured
from fetcher.settings.mongo_address import (
    AddressInvalid,
    compose_uri,
    refuses_tls,
    scheme_of,
    uses_tls,
)

SCHEMES: Final = ("mongodb", "mongodb+srv")
LONGEST_DATABASE_BYTES: Final = 63

_NO_DATABASE: Final = re.compile(r'[/\\. "$*<>:|?\x00]')
_POOL_SIZES: Final = range(1, 10_001)

_FILES: Final[Mapping[str, str]] = MappingProxyType(
    {"tlscafile": "tlsCAFile", "tlscertificatekeyfile": "tlsCertificateKeyFile"}
)
"""What an address may say of files, in lower case and as it is written: we read them, bounded and
in a thread, where the driver would read them on the loop."""
_LISTS_OF_THE_REVOKED: Final = "tlscrlfile"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAddress:
    """All that a client is made of: equal ones need no client of their own."""

    uri: str = field(repr=False)
    auth_source: str
    direct_connection: bool
    tls: bool
    skip_verify: bool
    ca_pem: str = field(repr=False)
    identity_pem: str = field(repr=False)
    """The certificate that is shown to the server, and its key."""
    max_pool_size: int


def database_name(place: MongoPlace) -> str:
    """As it is configured, not in lower case. Raise TenantNotConfigured for one that cannot be."""
    name = place.database
    if _NO_DATABASE.search(name) or not 0 < _utf8_length(name) <= LONGEST_DATABASE_BYTES:
        raise TenantNotConfigured("the record store's database has no valid name")
    return name


async def client_address(place: MongoPlace, *, allow_plaintext: bool) -> ClientAddress:
    """Read the place's files and put its address together.

    An explicit address counts as it is; trust roots or a certificate of our own turn TLS on, with
    it too. Raise TenantNotConfigured: for an address that cannot be, for a file that cannot be
    read, and without TLS unless ``allow_plaintext`` (spec configuration 4.1 and 4.2).
    """
    if place.max_pool_size not in _POOL_SIZES:
        raise TenantNotConfigured("the record store's pool size is out of range")
    if not _utf8_length(f" {place.uri}{place.user}{place.password}{place.auth_source}"):
        raise TenantNotConfigured("the record store's address holds half a character")
    uri, files = _without_files(_given(place.uri)) if place.uri else (_composed(place), {})
    ca_file = place.tls_ca_file or files.get("tlsCAFile", "")
    cert_file = place.tls_cert_file or files.get("tlsCertificateKeyFile", "")
    asks_for_tls = bool(place.tls or ca_file or cert_file or place.tls_key_file)
    if asks_for_tls and refuses_tls(uri):
        raise TenantNotConfigured("the record store's address turns TLS off and its files need it")
    tls = asks_for_tls or uses_tls(uri)
    if not tls and not allow_plaintext:
        raise TenantNotConfigured("its record store requires TLS")
    return ClientAddress(
        uri=uri,
        auth_source="" if place.uri else _auth_source(place),
        direct_connection=place.direct_connection and not place.uri,
        tls=tls,
        skip_verify=place.tls_skip_verify and tls,
        ca_pem=await tenant_trust_roots(ca_file, what="tlsCAFile"),
        identity_pem=await _identity(cert_file, place.tls_key_file),
        max_pool_size=place.max_pool_size,
    )


def _given(uri: str) -> str:
    try:
        known = scheme_of(uri) in SCHEMES
    except AddressInvalid:
        known = False
    if not known:
        raise TenantNotConfigured("the record store's address must be mongodb or mongodb+srv")
    return uri


def _composed(place: MongoPlace) -> str:
    if place.port not in PORTS:
        raise TenantNotConfigured("the record store has no valid port")
    if not is_host(place.host):
        raise TenantNotConfigured("the record store has no valid host")
    has_user = _has_user(place)
    return compose_uri(
        scheme="mongodb",
        host=f"[{place.host}]" if is_ip6(place.host) else place.host,
        port=place.port,
        user=place.user if has_user else "",
        password=place.password if has_user else "",
    )


def _has_user(place: MongoPlace) -> bool:
    return bool(place.user and place.password)


def _auth_source(place: MongoPlace) -> str:
    """Where we log in: clients are shared by databases, so that none is in the address's path."""
    return (place.auth_source or "admin") if _has_user(place) else ""


def _without_files(uri: str) -> tuple[str, Mapping[str, str]]:
    """The address without the parameters that name files, and those."""
    start, mark, query = uri.partition("?")
    kept: list[str] = []
    files: dict[str, str] = {}
    for part in re.split("[&;]", query):
        name, _, value = part.partition("=")
        name = unquote(name).lower()
        if name == _LISTS_OF_THE_REVOKED:
            raise TenantNotConfigured("the record store's address must not have a tlsCRLFile")
        if name in _FILES:
            files[_FILES[name]] = unquote(value)
        else:
            kept.append(part)
    return (f"{start}{mark}{'&'.join(kept)}" if kept else start), files


async def _identity(cert_file: str, key_file: str) -> str:
    """One file with both, or one for each."""
    paths = dict.fromkeys(path for path in (cert_file, key_file) if path)
    what = "tlsCertFile and tlsKeyFile"
    return "\n".join([await tenant_file(path, what=what) for path in paths])


def _utf8_length(text: str) -> int:
    """0 for what JSON can hold and no encoding can: half of a character."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 0
