"""A tenant's virtual host: what its place becomes (spec configuration 11.8, 4.1, 4.2)."""

from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.tenant_address import tenant_broker_address
from fetcher.domain.tenants import BrokerPlace, TenantNotConfigured
from tests.servers.certificates import Authority

PLACE = BrokerPlace(
    host="mq-7.int", port=5671, vhost="tenant_acme7", user="w7", password="s3cr3t", tls=True
)


async def address(
    place: BrokerPlace, *, default_tls: bool = False, allow_plaintext: bool = False
) -> BrokerAddress:
    return await tenant_broker_address(
        place, default_tls=default_tls, allow_plaintext=allow_plaintext
    )


async def test_a_place_becomes_an_address() -> None:
    assert await address(PLACE) == BrokerAddress(
        scheme="amqps",
        host="mq-7.int",
        port=5671,
        user="w7",
        password="s3cr3t",
        vhost="tenant_acme7",
    )


async def test_all_three_parts_are_percent_encoded() -> None:
    found = await address(replace(PLACE, user="w 7/@", password="p:/ %2F?#é", vhost="/a b%2F"))
    assert found.url() == (
        "amqps://w%207%2F%40:p%3A%2F%20%252F%3F%23%C3%A9@mq-7.int:5671/%2Fa%20b%252F"
    )
    url = URL(found.url())
    assert (url.user, url.password) == ("w 7/@", "p:/ %2F?#é")


@pytest.mark.parametrize(
    ("tls", "default_tls", "scheme"),
    [
        (True, False, "amqps"),
        (False, True, "amqp"),
        (None, True, "amqps"),
        (None, False, "amqp"),
    ],
)
async def test_what_the_place_does_not_say_of_tls_the_process_does(
    tls: bool | None, default_tls: bool, scheme: str
) -> None:
    place = replace(PLACE, tls=tls)
    found = await address(place, default_tls=default_tls, allow_plaintext=True)
    assert found.scheme == scheme
    if scheme == "amqp":
        with pytest.raises(TenantNotConfigured, match=r"its broker requires TLS$"):
            await address(place, default_tls=default_tls)


async def test_trust_roots_are_read_and_turn_tls_on(tmp_path: Path) -> None:
    ca = Authority().ca
    (tmp_path / "ca.pem").write_text(ca)
    place = replace(PLACE, tls=None, tls_ca_file=str(tmp_path / "ca.pem"))
    found = await address(place)
    assert (found.scheme, found.ca_pem) == ("amqps", ca)
    with pytest.raises(TenantNotConfigured, match="trust roots and no TLS"):
        await address(replace(place, tls=False), allow_plaintext=True)
    with pytest.raises(TenantNotConfigured, match="tlsCAFile cannot be read"):
        await address(replace(place, tls_ca_file=str(tmp_path / "canary")))


@pytest.mark.parametrize(
    "place",
    [
        replace(PLACE, host=""),
        replace(PLACE, host="canary/@h"),
        replace(PLACE, host="fe80::1%canary"),
        replace(PLACE, port=0),
        replace(PLACE, port=65536),
        replace(PLACE, vhost=""),
        replace(PLACE, vhost="c" * 256),
        replace(PLACE, vhost="canary\ud800"),
        replace(PLACE, vhost="canary\0"),
        replace(PLACE, user=""),
        replace(PLACE, user="a\0canary"),
        replace(PLACE, password="canary\ud800"),
    ],
)
async def test_what_cannot_be_is_told_without_its_text(place: BrokerPlace) -> None:
    with pytest.raises(TenantNotConfigured) as caught:
        await address(place)
    assert "canary" not in str(caught.value)


async def test_an_ip6_literal_is_a_host() -> None:
    assert "@[2001:db8::7]:5671/" in (await address(replace(PLACE, host="2001:db8::7"))).url()
