"""Internal sources of one tenant, as the Tenant Manager has them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fetcher.adapters.tenant_files import MAX_BYTES
from fetcher.domain.connections import Connection, Origin, SourceType, TlsSettings
from fetcher.domain.errors import PortError
from fetcher.domain.ids import ConnectionId
from fetcher.domain.internal_sources import InternalSourceMissing, internal_source_id
from fetcher.domain.tenants import (
    NO_TENANT,
    SourcePlace,
    Tenant,
    TenantAnswerUnreadable,
    TenantConfig,
    TenantDenied,
    TenantNotConfigured,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)
from fetcher.tenancy.internal_sources import TenantInternalSources

PEM = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"
POSTGRESQL = SourcePlace(
    type=SourceType.POSTGRESQL,
    host="pg-7.int",
    port=5432,
    database="ledger",
    user="t_44",
    password="canary",
    schema="own",
)
MONGO = SourcePlace(
    type=SourceType.MONGODB,
    host="mongo-8.int",
    port=27018,
    database="crm",
    ssl_mode="enable",
    options={"authSource": "z"},
)


@dataclass
class Directory:
    """Implements TenantDirectory for the one question."""

    answer: SourcePlace | PortError
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def is_left_alone(self) -> bool:
        return False

    async def active(self, *, within_seconds: float) -> Sequence[str]:
        raise NotImplementedError

    async def config(self, tenant_id: str, *, fresh: bool = False) -> TenantConfig:
        raise NotImplementedError

    async def source(self, tenant_id: str, service: str, module: str) -> SourcePlace:
        self.asked.append((tenant_id, service, module))
        if isinstance(self.answer, PortError):
            raise self.answer
        return self.answer

    def forget(self, tenant_id: str) -> None:
        raise NotImplementedError


async def found(
    answer: SourcePlace | PortError,
    name: str = "midaz_onboarding",
    *,
    noted: list[str] | None = None,
) -> Connection:
    told = noted if noted is not None else []
    sources = TenantInternalSources(Directory(answer), Tenant("acme"), noted=told.extend)
    return await sources.find(name)


async def test_a_source_is_a_connection_with_the_tenants_id() -> None:
    assert await found(POSTGRESQL) == Connection(
        id=internal_source_id("midaz_onboarding", "acme"),
        config_name="midaz_onboarding",
        type=SourceType.POSTGRESQL,
        host="pg-7.int",
        port=5432,
        database_name="ledger",
        username="t_44",
        password_encrypted="",
        plain_password="canary",
        encryption_key_version="",
        origin=Origin.INTERNAL,
        created_at=datetime(1, 1, 1, tzinfo=UTC),
        updated_at=datetime(1, 1, 1, tzinfo=UTC),
        schema="own",
    )
    crm = await found(MONGO, "plugin_crm")
    assert (crm.tls, crm.metadata) == (TlsSettings(mode="enable"), {"authSource": "z"})
    assert (crm.schema, crm.is_internal) == (None, True)


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("midaz_onboarding", "6555c37d-1c1f-5653-8d51-0adac4d8cd80"),
        ("plugin_crm", "dc9da466-285c-5964-9275-4a91f8a8d4b2"),
    ],
)
async def test_ids_are_the_specs(name: str, identifier: str) -> None:
    place = MONGO if name == "plugin_crm" else POSTGRESQL
    assert str((await found(place, name)).id) == identifier


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("midaz_onboarding", "onboarding"),
        ("midaz_transaction", "transaction"),
        ("plugin_crm", "crm"),
    ],
)
async def test_each_name_is_a_module_of_the_ledger(name: str, module: str) -> None:
    directory = Directory(MONGO if name == "plugin_crm" else POSTGRESQL)
    sources = TenantInternalSources(directory, Tenant("acme"), noted=lambda _: None)
    await sources.find(name)
    assert directory.asked == [("acme", "ledger", module)]


async def test_postgresql_without_a_schema_lists_the_one_named_like_its_user() -> None:
    assert (await found(POSTGRESQL)).listed_schema == ""
    connection = await found(replace(POSTGRESQL, schema=""))
    assert (connection.schema, connection.listed_schema) == (None, "t_44")
    assert (await found(replace(MONGO, user="t_44"), "plugin_crm")).listed_schema == ""


async def test_a_name_that_is_not_reserved_is_never_asked_for() -> None:
    directory = Directory(POSTGRESQL)
    sources = TenantInternalSources(directory, Tenant("acme"), noted=lambda _: None)
    with pytest.raises(InternalSourceMissing):
        await sources.find("my_own_db")
    assert directory.asked == []


@pytest.mark.parametrize(
    "word",
    [
        TenantUnknown("acme"),
        TenantSuspended("purged"),
        TenantDenied(),
        TenantNotConfigured("no module"),
        MONGO,
    ],
)
async def test_what_is_refused_or_of_another_type_is_missing(word: SourcePlace | PortError) -> None:
    with pytest.raises(InternalSourceMissing) as caught:
        await found(word)
    assert caught.value.code == "FET-1020"
    text = "internal datasource 'midaz_onboarding' not configured for this tenant"
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (TenantsUnavailable("away"), TenantsUnavailable),
        (TenantsLeftAlone(), TenantsLeftAlone),
        (TenantAnswerUnreadable(), TenantsUnavailable),
    ],
)
async def test_what_may_pass_is_unavailable(
    failure: PortError, raised: type[TenantsUnavailable]
) -> None:
    with pytest.raises(raised) as caught:
        await found(failure)
    assert caught.value.__context__ is None


async def test_without_a_tenant_there_are_none() -> None:
    with pytest.raises(ValueError, match="need one"):
        TenantInternalSources(Directory(POSTGRESQL), NO_TENANT, noted=lambda _: None)


async def test_certificates_are_texts_or_files(tmp_path: Path) -> None:
    ca, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    ca.write_text(PEM)
    key.write_text("-----BEGIN PRIVATE KEY-----")
    noted = list[str]()
    place = replace(POSTGRESQL, ssl_mode="verify-full", ca=str(ca), cert=PEM, key=str(key))
    connection = await found(place, noted=noted)
    assert connection.tls == TlsSettings(
        mode="verify-full", ca=PEM, cert=PEM, key="-----BEGIN PRIVATE KEY-----"
    )
    assert noted == ["-----BEGIN PRIVATE KEY-----"]


async def test_certificates_without_a_mode_are_not_even_read() -> None:
    assert (await found(replace(POSTGRESQL, ca="/nowhere/ca.pem"))).tls is None


@pytest.mark.parametrize("name", ["missing.pem", "large.pem", "binary.pem", "pipe", "a\0b", ""])
async def test_a_file_that_cannot_be_read_never_weakens_a_mode(name: str, tmp_path: Path) -> None:
    (tmp_path / "large.pem").write_text(PEM + "a" * MAX_BYTES)
    (tmp_path / "binary.pem").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "pipe")
    place = replace(POSTGRESQL, ssl_mode="verify-full", ca=str(tmp_path / name))
    with pytest.raises(
        TenantsUnavailable, match=r"^a certificate's file cannot be read$"
    ) as caught:
        await found(place)
    assert caught.value.__context__ is None


def test_two_tenants_share_no_id() -> None:
    ids: set[ConnectionId] = {
        internal_source_id("plugin_crm", tenant) for tenant in ("acme", "beta", "")
    }
    assert len(ids) == 3
