"""Where MongoDB is, by the settings, and what is wrong with that (spec configuration 2.2)."""

from typing import Final

from fetcher.settings.certificates import ca_pem, ca_rules
from fetcher.settings.host_entries import is_port
from fetcher.settings.model import Settings
from fetcher.settings.mongo_address import (
    AddressInvalid,
    compose_uri,
    hosts_of,
    refuses_tls,
    scheme_of,
    uses_tls,
)

SCHEMES: Final = ("mongodb", "mongodb+srv")


def mongo_uri(settings: Settings) -> str:
    """The whole address: as it was given, or composed from its parts."""
    whole = settings.mongo_uri.get_secret_value()
    if "://" in whole:
        return whole
    return compose_uri(
        scheme=whole or "mongodb",
        host=settings.mongo_host,
        port=int(settings.mongo_port) if is_port(settings.mongo_port) else None,
        user=settings.mongo_user,
        password=settings.mongo_password.get_secret_value(),
        parameters=settings.mongo_parameters,
    )


def mongo_hosts(settings: Settings) -> tuple[str, ...]:
    """The hosts of the record store's address, without ports; none where it is embedded, or each
    tenant has its own."""
    if settings.record_store_is_embedded or settings.multi_tenant_enabled:
        return ()
    return hosts_of(mongo_uri(settings))


def mongo_ca_pem(settings: Settings) -> str:
    """The trust roots as PEM, empty where the system's count."""
    return ca_pem(settings.mongo_tls_ca_cert)


def mongo_uses_tls(settings: Settings) -> bool:
    """Trust roots turn TLS on. Raise AddressInvalid for what is no address."""
    address_has_it = uses_tls(mongo_uri(settings))
    return address_has_it or bool(settings.mongo_tls_ca_cert)


def mongo_rules(settings: Settings) -> list[str]:
    if settings.record_store_is_embedded or settings.multi_tenant_enabled:
        return []
    problems: list[str] = []
    uri = mongo_uri(settings)
    # without MONGO_HOST that is what is told
    has_host = bool(hosts_of(uri)) or "://" not in settings.mongo_uri.get_secret_value()
    try:
        is_known = scheme_of(uri) in SCHEMES and has_host
    except AddressInvalid:
        is_known = False
    if not is_known:
        problems.append(
            "MONGO_URI: must be mongodb, mongodb+srv, or a whole address that begins so"
        )
    if not settings.mongo_name:
        problems.append("MONGO_NAME: required with MongoDB")
    if settings.mongo_port and not is_port(settings.mongo_port):
        problems.append("MONGO_PORT: must be a port number")
    problems += ca_rules("MONGO_TLS_CA_CERT", settings.mongo_tls_ca_cert)
    if settings.mongo_tls_ca_cert and refuses_tls(uri):
        problems.append("MONGO_TLS_CA_CERT: contradicts the address, which turns TLS off")
    return problems
