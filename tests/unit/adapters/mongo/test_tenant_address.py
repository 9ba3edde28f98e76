"""A tenant's record store: what its place becomes (spec configuration 11.7, 4.1, 4.2)."""

from dataclasses import replace
from pathlib import Path

import pytest

from fetcher.adapters.mongo.tenant_address import ClientAddress, client_address, database_name
from fetcher.domain.tenants import MongoPlace, TenantNotConfigured
from tests.servers.certificates import Authority

PLACE = MongoPlace(database="fetcher_acme7", host="mongo-7.int", port=27017, tls=True)


async def address(place: MongoPlace, *, allow_plaintext: bool = False) -> ClientAddress:
    return await client_address(place, allow_plaintext=allow_plaintext)


async def test_fields_become_an_address_without_the_database() -> None:
    found = await address(PLACE)
    assert found == ClientAddress(
        uri="mongodb://mongo-7.int:27017",
        auth_source="",
        direct_connection=False,
        tls=True,
        skip_verify=False,
        ca_pem="",
        identity_pem="",
        max_pool_size=100,
    )
    assert await address(replace(PLACE, database="fetcher_beta2")) == found


@pytest.mark.parametrize(
    ("auth_source", "expected"), [("", "admin"), ("ops", "ops")], ids=["unset", "configured"]
)
async def test_credentials_are_encoded_and_log_in_at_the_configured_database(
    auth_source: str, expected: str
) -> None:
    found = await address(replace(PLACE, user="u:7@", password="s/3?#%é", auth_source=auth_source))
    assert found.uri == "mongodb://u%3A7%40:s%2F3%3F%23%25%C3%A9@mongo-7.int:27017"
    assert found.auth_source == expected
    assert "s/3" not in f"{found!r}"
    assert "%2F3" not in f"{found!r}"


@pytest.mark.parametrize(("user", "password"), [("u7", ""), ("", "s3cr3t")])
async def test_half_of_the_credentials_is_none(user: str, password: str) -> None:
    found = await address(replace(PLACE, user=user, password=password, auth_source="ops"))
    assert (found.uri, found.auth_source) == ("mongodb://mongo-7.int:27017", "")


async def test_an_ip6_literal_is_put_into_brackets() -> None:
    assert (await address(replace(PLACE, host="2001:db8::7"))).uri == (
        "mongodb://[2001:db8::7]:27017"
    )


async def test_an_explicit_address_counts_as_it_is() -> None:
    uri = "mongodb+srv://u:s3cr3t@cluster.acme.test/fetcher?authSource=ops&retryWrites=true"
    found = await address(
        replace(PLACE, uri=uri, tls=False, host="", port=None, direct_connection=True, user="x")
    )
    assert (found.uri, found.auth_source, found.direct_connection) == (uri, "", False)
    assert found.tls is True
    assert "s3cr3t" not in f"{found!r}"


async def test_files_in_an_explicit_address_are_read_by_us(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.certificate("u7", client=True)
    (tmp_path / "ca %.pem").write_text(authority.ca)
    (tmp_path / "both.pem").write_text(f"{identity.cert}\n{identity.key}")
    found = await address(
        replace(
            PLACE,
            tls=False,
            uri=f"mongodb://h1/?tls=true&TLSCAFile={tmp_path}/ca%20%25.pem"
            f"&tlsCertificateKeyFile={tmp_path}/both.pem&retryWrites=false",
        )
    )
    assert found.uri == "mongodb://h1/?tls=true&retryWrites=false"
    assert found.ca_pem == authority.ca
    assert identity.key in found.identity_pem


async def test_separate_files_are_one_identity(tmp_path: Path) -> None:
    identity = Authority().certificate("u7", client=True)
    (tmp_path / "cert.pem").write_text(identity.cert)
    (tmp_path / "key.pem").write_text(identity.key)
    found = await address(
        replace(PLACE, tls_cert_file=f"{tmp_path}/cert.pem", tls_key_file=f"{tmp_path}/key.pem")
    )
    assert found.identity_pem == f"{identity.cert}\n{identity.key}"


async def test_a_renewed_file_is_another_address(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    place = replace(PLACE, tls_ca_file=str(path))
    path.write_text(Authority().ca)
    first = await address(place)
    assert await address(place) == first
    path.write_text(Authority().ca)
    assert await address(place) != first


PLAIN = replace(PLACE, tls=False)


@pytest.mark.parametrize(
    "place",
    [
        PLAIN,
        replace(PLAIN, uri="mongodb://h1/"),
        replace(PLAIN, uri="mongodb+srv://h1/?tls=false"),
        replace(PLAIN, uri="mongodb://h1/?ssl=0&tls=true"),
    ],
)
async def test_plain_text_is_refused_unless_the_process_allows_it(place: MongoPlace) -> None:
    with pytest.raises(TenantNotConfigured, match=r"its record store requires TLS$"):
        await address(place)
    assert (await address(place, allow_plaintext=True)).tls is False


async def test_trust_roots_turn_tls_on(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(Authority().ca)
    place = replace(PLAIN, tls_ca_file=f"{tmp_path}/ca.pem")
    assert (await address(place)).tls is True
    assert (await address(replace(place, uri="mongodb://h1/"))).tls is True
    with pytest.raises(TenantNotConfigured, match="turns TLS off and its files need it"):
        await address(replace(place, uri="mongodb://h1/?tls=false"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (replace(PLACE, host=""), "no valid host"),
        (replace(PLACE, host="canary/@h"), "no valid host"),
        (replace(PLACE, host="canary,h2"), "no valid host"),
        (replace(PLACE, host="fe80::1%canary"), "no valid host"),
        (replace(PLACE, port=None), "no valid port"),
        (replace(PLACE, port=0), "no valid port"),
        (replace(PLACE, port=65536), "no valid port"),
        (replace(PLACE, uri="http://canary@h1/"), "must be mongodb or mongodb\\+srv"),
        (replace(PLACE, uri="canary"), "must be mongodb or mongodb\\+srv"),
        (replace(PLACE, uri="mongodb://h1/?tlsCRLFile=/canary"), "must not have a tlsCRLFile"),
        (replace(PLACE, password="canary\ud800", user="u"), "half a character"),
        (replace(PLACE, max_pool_size=0), "pool size is out of range"),
    ],
)
async def test_what_cannot_be_is_told_without_its_text(place: MongoPlace, said: str) -> None:
    with pytest.raises(TenantNotConfigured, match=said) as caught:
        await address(place)
    assert "canary" not in str(caught.value)


def test_the_database_is_taken_as_it_is_configured() -> None:
    assert database_name(replace(PLACE, database="Fetcher-Acme_7é")) == "Fetcher-Acme_7é"
    assert database_name(replace(PLACE, database="d" * 63)) == "d" * 63


@pytest.mark.parametrize(
    "name",
    ["", "a/b", "a\\b", "a.b", "a b", 'a"b', "a$b", "a\0b", "d" * 64, "é" * 32, "\ud800"],
)
def test_a_name_that_no_database_has_is_refused(name: str) -> None:
    with pytest.raises(TenantNotConfigured, match=r"has no valid name$"):
        database_name(replace(PLACE, database=name))
