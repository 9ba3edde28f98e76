"""What of a record decides which sessions serve it."""

from dataclasses import replace
from typing import Any

import pytest

from fetcher.datasources.host_guard import HostGuard
from fetcher.datasources.records import target_of, version_of
from fetcher.datasources.source_settings import SourceSettings
from fetcher.domain.connections import Origin, TlsSettings
from fetcher_engine import SourceFailure, Stage
from tests.integration.datasources.harness import a_connection

SETTINGS = SourceSettings(decrypt=lambda stored, _: stored)
RECORD = a_connection(
    host="db.example.com", port=5432, database="shop", user="app", password="canary-secret"
)


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "db2.example.com"},
        {"port": 5433},
        {"database_name": "shop2"},
        {"username": "app2"},
        {"password_encrypted": "other"},
        {"tls": TlsSettings(mode="require")},
        {"tls": TlsSettings(mode="verify-full", ca="PEM")},
        {"metadata": {"serviceName": "ORDERS"}},
        {"origin": Origin.INTERNAL},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_decides_where_and_as_whom_makes_another_version(changed: dict[str, Any]) -> None:
    assert version_of(replace(RECORD, **changed), SETTINGS) != version_of(RECORD, SETTINGS)


@pytest.mark.parametrize("part", ["ca", "cert", "key"])
def test_each_text_of_tls_makes_another_version(part: str) -> None:
    tls = TlsSettings(mode="verify-full", ca="a", cert="b", key="c")
    one, other = replace(RECORD, tls=tls), replace(RECORD, tls=replace(tls, **{part: "x"}))
    assert version_of(one, SETTINGS) != version_of(other, SETTINGS)


def test_the_private_key_of_tls_is_revealed_with_its_own_version() -> None:
    settings = SourceSettings(decrypt=lambda stored, version: f"{stored} by {version}")
    tls = TlsSettings(mode="verify-full", ca="CA", cert="CERT", key="fetcher-encrypted:7:sealed")
    target = target_of(replace(RECORD, tls=tls), settings)
    assert target.tls == replace(tls, key="sealed by 7")
    assert target.password == "canary-secret by 1"
    in_clear = replace(tls, key="-----BEGIN PRIVATE KEY-----")
    assert target_of(replace(RECORD, tls=in_clear), settings).tls == in_clear


def test_a_private_key_that_cannot_be_revealed_is_a_credential_failure() -> None:
    def decrypt(stored: str, key_version: str) -> str:
        if key_version == "7":
            raise ValueError(f"canary {stored}")
        return stored

    tls = TlsSettings(mode="verify-full", cert="CERT", key="fetcher-encrypted:7:sealed")
    with pytest.raises(SourceFailure) as caught:
        target_of(replace(RECORD, tls=tls), SourceSettings(decrypt=decrypt))
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "credential")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_the_host_guard_makes_another_version() -> None:
    guarded = replace(SETTINGS, judge=HostGuard().judge)
    assert version_of(RECORD, guarded) != version_of(RECORD, SETTINGS)


def test_a_renamed_connection_is_the_same_for_its_sessions() -> None:
    renamed = replace(RECORD, config_name="renamed", product_name="other", schema="s")
    assert version_of(renamed, SETTINGS) == version_of(RECORD, SETTINGS)


def test_a_version_tells_nothing_of_the_record() -> None:
    version = version_of(RECORD, SETTINGS)
    assert len(version) == 32
    assert set(version) <= set("0123456789abcdef")


def test_secrets_that_are_sealed_anew_are_the_same_for_its_sessions() -> None:
    """A rotation of keys ends no session."""
    settings = SourceSettings(decrypt=lambda stored, version: stored.removesuffix(f" by {version}"))

    def sealed(version: str, secret: str) -> str:
        tls = TlsSettings(mode="require", key=f"fetcher-encrypted:{version}:{secret} by {version}")
        record = replace(
            RECORD,
            password_encrypted=f"{secret} by {version}",
            encryption_key_version=version,
            tls=tls,
        )
        return version_of(record, settings)

    assert sealed("1", "canary") == sealed("2", "canary")
    assert sealed("1", "canary") != sealed("1", "other")


def test_secrets_that_cannot_be_revealed_make_a_version_all_the_same() -> None:
    def decrypt(stored: str, key_version: str) -> str:
        raise ValueError(stored)

    settings = SourceSettings(decrypt=decrypt)
    other = replace(RECORD, password_encrypted="other")
    assert version_of(RECORD, settings) == version_of(RECORD, settings)
    assert version_of(other, settings) != version_of(RECORD, settings)
