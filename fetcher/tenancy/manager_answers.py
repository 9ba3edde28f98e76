"""What the Tenant Manager's answers say (spec configuration 11.4): hostile JSON in, values out.

Nothing of an answer stands in an error's text but names of members that it lacks, and of modules.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.json_values import JsonObject, JsonValue
from fetcher.domain.tenants import (
    SERVICE,
    BrokerPlace,
    MongoPlace,
    SourcePlace,
    TenantAnswerUnreadable,
    TenantConfig,
    TenantNotConfigured,
    TenantSuspended,
    is_tenant_id,
)
from fetcher.tenancy.answer_members import (
    any_text,
    flag,
    member,
    required_port,
    required_text,
    text,
    whole,
)
from fetcher.tenancy.mongo_members import database_name, mongo_uri, uri_secrets
from fetcher.tenancy.source_places import Isolation, source_place

MAX_DEPTH: Final = 16
MAX_MODULES: Final = 200
MAX_POOL_SIZE: Final = 1000
DEFAULT_POOL_SIZE: Final = 100

SERVERS_OWN: Final = frozenset({"admin", "config", "local"})
"""Databases that each MongoDB has, with its users and settings."""

SUSPENSIONS: Final = frozenset({"suspended", "purged"})

_MODULE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_LISTED_MODULES: Final = 20
_UUID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ActiveTenants:
    ids: Sequence[str]
    strange: int
    """So many entries have an id that no tenant can have; they are left out."""


@dataclass(frozen=True, slots=True)
class ServiceSources:
    """Databases of another service, by module; of one that cannot be used, what it lacks."""

    service: str
    places: Mapping[str, SourcePlace | str]

    def place(self, module: str) -> SourcePlace:
        """Raise TenantNotConfigured, which lists the modules that there are."""
        found = self.places.get(module)
        if found is None:
            names = sorted(name for name in self.places if _MODULE_NAME.fullmatch(name))
            listed = ", ".join(names[:_LISTED_MODULES]) or "none"
            raise TenantNotConfigured(
                f"no module {module} of the service {self.service}; available: {listed}"
            )
        if isinstance(found, str):
            raise TenantNotConfigured(found)
        return found


def active_tenants(body: bytes) -> ActiveTenants:
    """Raise TenantAnswerUnreadable for what is no list of tenants."""
    value = _parsed(body)
    # a service in Go writes a list without entries as null
    entries = [] if value is None else value
    if not isinstance(entries, list):
        raise TenantAnswerUnreadable
    ids = [text(entry, "id") for entry in map(_entry, entries) if entry is not None]
    told = dict.fromkeys(each for each in ids if each.strip())
    usable = [each for each in told if is_tenant_id(each)]
    return ActiveTenants(ids=usable, strange=len(told) - len(usable))


def suspension_in(body: bytes) -> str | None:
    """The status that a 403 names; None where it names none, or is no JSON."""
    try:
        value = _parsed(body)
        status = text(value, "status").lower() if isinstance(value, dict) else ""
    except TenantAnswerUnreadable:
        return None
    return status if status in SUSPENSIONS else None


def tenant_config(body: bytes, *, tenant_id: str, broker_module: str) -> TenantConfig:
    """Where our own service's things lie.

    Raise TenantNotConfigured for what is missing, and where the place is not the tenant's own;
    TenantSuspended; TenantAnswerUnreadable, also for an answer about somebody else.
    """
    answer = _connections(body, tenant_id=tenant_id, service=SERVICE)
    if _isolation(answer) is not Isolation.OWN_DATABASE:
        # our records name no tenant: nothing would tell theirs apart
        raise TenantNotConfigured("isolationMode must be isolated: a shared database is refused")
    module = member(_databases(answer), SERVICE) or {}
    mongo = member(module, "mongodb")
    if mongo is None:
        raise TenantNotConfigured(f"databases.{SERVICE}.mongodb is missing")
    return TenantConfig(
        tenant_id=tenant_id,
        database=_mongo_place(mongo, f"databases.{SERVICE}.mongodb"),
        broker=_broker_place(answer, broker_module),
    )


def service_sources(body: bytes, *, tenant_id: str, service: str) -> ServiceSources:
    """The databases of another service of the tenant (12.2).

    Raise TenantSuspended; TenantAnswerUnreadable, also for an answer about somebody else.
    """
    answer = _connections(body, tenant_id=tenant_id, service=service)
    isolation = _isolation(answer)
    places: dict[str, SourcePlace | str] = {}
    for name in (databases := _databases(answer)):
        try:
            places[name] = source_place(member(databases, name) or {}, isolation=isolation)
        except TenantNotConfigured as lacking:
            places[name] = lacking.what
    return ServiceSources(service, places)


def secrets_of_config(config: TenantConfig) -> Iterator[str]:
    yield config.database.password
    yield from uri_secrets(config.database.uri)
    yield config.broker.password


def secrets_of_sources(sources: ServiceSources) -> Iterator[str]:
    for place in sources.places.values():
        if isinstance(place, SourcePlace):
            yield place.password
            yield place.key


def _connections(body: bytes, *, tenant_id: str, service: str) -> JsonObject:
    value = _parsed(body)
    if not isinstance(value, dict):
        raise TenantAnswerUnreadable
    told_id, told_service = text(value, "id"), text(value, "service")
    if told_id and _plain_id(told_id) != _plain_id(tenant_id):
        raise TenantAnswerUnreadable
    if told_service and told_service != service:
        raise TenantAnswerUnreadable
    if (status := text(value, "status").lower()) in SUSPENSIONS:
        raise TenantSuspended(status)
    return value


def _isolation(answer: JsonObject) -> Isolation:
    """What is none that we know is taken for a shared place."""
    mode = text(answer, "isolationMode").lower()
    return Isolation.OWN_DATABASE if mode in ("", "isolated", "database") else Isolation.SHARED


def _databases(answer: JsonObject) -> JsonObject:
    databases = member(answer, "databases") or {}
    if len(databases) > MAX_MODULES:
        raise TenantAnswerUnreadable
    return databases


def _mongo_place(told: JsonObject, where: str) -> MongoPlace:
    uri = mongo_uri(told, where)
    name = database_name(told, where)
    if name in SERVERS_OWN:
        raise TenantNotConfigured(f"{where}.database must be no database of the server's own")
    pool_size = whole(told, "maxPoolSize")
    return MongoPlace(
        database=name,
        uri=uri,
        host=text(told, "host") if uri else required_text(told, "host", where),
        port=None if uri else required_port(told, where),
        user=text(told, "username"),
        password=any_text(told, "password"),
        auth_source=text(told, "authSource"),
        direct_connection=flag(told, "directConnection") or False,
        max_pool_size=min(pool_size, MAX_POOL_SIZE) if pool_size > 0 else DEFAULT_POOL_SIZE,
        tls=flag(told, "tls") or False,
        tls_ca_file=text(told, "tlsCAFile"),
        tls_cert_file=text(told, "tlsCertFile"),
        tls_key_file=text(told, "tlsKeyFile"),
        tls_skip_verify=flag(told, "tlsSkipVerify") or False,
    )


def _broker_place(answer: JsonObject, module: str) -> BrokerPlace:
    where = f"rabbitmq.{module}"
    told = member(member(answer, "rabbitmq") or {}, module)
    if told is None:
        where = "messaging.rabbitmq"
        told = member(member(answer, "messaging") or {}, "rabbitmq")
    if told is None:
        raise TenantNotConfigured(f"{where} is missing")
    return BrokerPlace(
        host=required_text(told, "host", where),
        port=required_port(told, where),
        vhost=required_text(told, "vhost", where),
        user=text(told, "username"),
        password=any_text(told, "password"),
        tls=flag(told, "tls"),
        tls_ca_file=text(told, "tlsCAFile"),
    )


def _parsed(body: bytes) -> JsonValue:
    try:
        return parse(body, max_depth=MAX_DEPTH)
    except JsonTextError:
        pass
    raise TenantAnswerUnreadable


def _entry(value: JsonValue) -> JsonObject | None:
    if value is None or isinstance(value, dict):
        return value
    raise TenantAnswerUnreadable


def _plain_id(tenant_id: str) -> str:
    """Newer servers write an id that is a UUID in lower case, without its dashes."""
    bare = tenant_id.replace("-", "").lower()
    return bare if _UUID.fullmatch(bare) else tenant_id
