"""From a tenant's place to the address of its virtual host (spec configuration 11.8)."""

from typing import Final

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.tenant_files import tenant_trust_roots
from fetcher.adapters.tenant_hosts import PORTS, is_host
from fetcher.domain.tenants import BrokerPlace, TenantNotConfigured

LONGEST_NAME_BYTES: Final = 255
"""AMQP 0-9-1: the name of a virtual host is a short string."""


async def tenant_broker_address(
    place: BrokerPlace, *, default_tls: bool, allow_plaintext: bool
) -> BrokerAddress:
    """Read the place's trust roots and put its address together.

    ``default_tls`` (``RABBITMQ_TLS``) counts where the place says nothing of TLS and has no trust
    roots. Raise TenantNotConfigured: for a place that cannot be, for a file that cannot be read,
    and without TLS unless ``allow_plaintext`` (spec configuration 4.1 and 4.2).
    """
    _check(place)
    if place.tls is False and place.tls_ca_file:
        raise TenantNotConfigured("its broker has trust roots and no TLS")
    tells = place.tls if place.tls is not None else bool(place.tls_ca_file) or default_tls
    if not tells and not allow_plaintext:
        raise TenantNotConfigured("its broker requires TLS")
    return BrokerAddress(
        scheme="amqps" if tells else "amqp",
        host=place.host,
        port=place.port,
        user=place.user,
        password=place.password,
        vhost=place.vhost,
        ca_pem=await tenant_trust_roots(place.tls_ca_file, what="the broker's tlsCAFile"),
    )


def _check(place: BrokerPlace) -> None:
    if not is_host(place.host):
        raise TenantNotConfigured("the broker has no valid host")
    if place.port not in PORTS:
        raise TenantNotConfigured("the broker has no valid port")
    if not _is_name(place.vhost):
        raise TenantNotConfigured("the broker's virtual host has no valid name")
    if not _is_name(place.user) or not _is_text(place.password):
        raise TenantNotConfigured("the broker's credentials cannot be sent")


def _is_name(text: str) -> bool:
    return _is_text(text) and 0 < len(text.encode()) <= LONGEST_NAME_BYTES


def _is_text(text: str) -> bool:
    """Without half characters, which JSON can hold and AMQP cannot, and without a zero, which ends
    the name of a user who logs in."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
