"""TLS of a new connection: spec rest-api 7.4."""

import pytest

from fetcher.api.services import HttpSettings
from fetcher.domain.tls_keys import open_tls_key
from tests.unit.api.harness import (
    ReversingCipher,
    a_body,
    an_api,
)

PEM = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n"


async def test_tls_answers_with_its_mode_only() -> None:
    tls = {"mode": "verify-ca", "ca": PEM, "cert": PEM, "key": KEY}
    answered = await an_api().create(a_body(ssl=tls))
    assert answered.status == 201
    assert answered.json["ssl"] == {"mode": "verify-ca"}
    assert b"BEGIN" not in answered.raw


async def test_private_key_of_tls_is_stored_encrypted() -> None:
    api = an_api()
    await api.create(a_body(ssl={"mode": "verify-ca", "ca": PEM, "cert": PEM, "key": KEY}))
    [stored] = await api.records.connections.find_by_config_names(["sales_db"])
    assert stored.tls is not None
    assert (stored.tls.ca, stored.tls.cert) == (PEM, PEM)
    assert "BEGIN" not in stored.tls.key
    opened = open_tls_key(stored.tls, ReversingCipher().decrypt)
    assert opened.key == KEY


async def test_key_in_the_stored_form_is_no_key() -> None:
    tls = {"mode": "verify-ca", "ca": PEM, "cert": PEM, "key": "fetcher-encrypted:1:c2VhbGVk"}
    answered = await an_api().create(a_body(ssl=tls))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == ["ssl.key"]


async def test_mode_that_does_not_verify_needs_no_ca() -> None:
    """Voided row: decisions, "`ssl.ca` is required only by the verify modes"."""
    answered = await an_api().create(a_body(ssl={"mode": "require"}))
    assert answered.json["ssl"] == {"mode": "require"}


async def test_mode_that_verifies_needs_a_ca() -> None:
    answered = await an_api().create(a_body(ssl={"mode": "verify-full"}))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["ssl.ca"]


async def test_mode_of_another_type_is_told_as_such_and_misses_no_ca() -> None:
    answered = await an_api().create(a_body(ssl={"mode": "strict"}))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert answered.json["fields"]["ssl.mode"].startswith("FET-0413 - ")
    assert '"verify-full"' in answered.json["fields"]["ssl.mode"]


async def test_tls_without_a_mode_misses_it() -> None:
    """Changed row: the mode alone is missing since the decision on ``ssl.ca``."""
    answered = await an_api().create(a_body(ssl={"cert": "x"}))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["ssl.mode"]


@pytest.mark.parametrize("type_name", ["POSTGRESQL", "MYSQL", "MONGODB", "SQL_SERVER"])
@pytest.mark.parametrize(
    "mode", ["REQUIRE", "true&password=x", "true\n", "true\0", "trцe", " true ", "verify"]
)
async def test_tls_modes_are_exact(type_name: str, mode: str) -> None:
    answered = await an_api().create(a_body(type=type_name, ssl={"mode": mode, "ca": PEM}))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert answered.json["fields"]["ssl.mode"].startswith("FET-0413 - ")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"type": "MYSQL", "ssl": {"mode": "verify-ca", "ca": PEM}},
            "FET-0413 - not an SSL mode of MYSQL"
            ' (valid modes for MYSQL: "false", "preferred", "skip-verify", "true")',
        ),
        (
            {"type": "MYSQL", "ssl": {"mode": "SKIP-VERIFY"}},
            'FET-0413 - not an SSL mode of MYSQL, did you mean "skip-verify"?'
            ' (valid modes for MYSQL: "false", "preferred", "skip-verify", "true")',
        ),
        (
            {"type": "SQLITE", "databaseName": "a.db", "ssl": {"mode": "true"}},
            "FET-0413 - not an SSL mode of SQLITE (valid modes for SQLITE: none)",
        ),
    ],
)
async def test_wrong_tls_mode_is_answered_with_the_right_ones(
    changed: dict[str, object], text: str
) -> None:
    api = an_api(settings=HttpSettings(sqlite_allowed=True))
    answered = await api.create(a_body(**changed))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert answered.json["fields"] == {"ssl.mode": text}


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        ({"ca": "no pem"}, "ssl.ca"),
        ({"ca": PEM, "cert": KEY, "key": KEY}, "ssl.cert"),
        ({"ca": PEM, "cert": PEM, "key": PEM}, "ssl.key"),
        ({"ca": PEM, "cert": PEM}, "ssl.key"),
        ({"ca": PEM, "key": KEY}, "ssl.cert"),
        ({"ca": "x" * 70_000}, "ssl.ca"),
    ],
)
async def test_certificates_are_judged_at_creation(tls: dict[str, str], field: str) -> None:
    answered = await an_api().create(a_body(ssl={"mode": "verify-ca"} | tls))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == [field]
