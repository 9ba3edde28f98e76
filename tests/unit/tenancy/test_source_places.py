"""Databases of other services, as internal sources: which one, and with what TLS."""

from typing import Any

import pytest

from fetcher.domain.connections import SourceType
from fetcher.domain.tenants import (
    SourcePlace,
    TenantAnswerUnreadable,
    TenantNotConfigured,
    TenantSuspended,
)
from fetcher.tenancy.manager_answers import secrets_of_sources, service_sources
from tests.unit.tenancy.answers import POSTGRESQL, SOURCE_MONGO, SOURCE_PASSWORD, a_body

URI = "mongodb://strange:canary@other.test:1/another"


def place(isolation: str = "isolated", **module: Any) -> SourcePlace:
    body = a_body(service="ledger", databases={"m": module}, isolationMode=isolation)
    return service_sources(body, tenant_id="acme-7", service="ledger").place("m")


def mongo(**changed: Any) -> SourcePlace:
    return place(mongodb=SOURCE_MONGO | changed)


def postgresql(**changed: Any) -> SourcePlace:
    return place(postgresql=POSTGRESQL | changed)


def test_postgresql_stands_before_mongodb() -> None:
    assert place(mongodb=SOURCE_MONGO, postgresql=POSTGRESQL) == SourcePlace(
        type=SourceType.POSTGRESQL,
        host="pg-7.int",
        port=5432,
        database="ledger",
        user="t_44",
        password=SOURCE_PASSWORD,
        ssl_mode="require",
    )


def test_mongodb_without_tls() -> None:
    assert mongo() == SourcePlace(
        type=SourceType.MONGODB,
        host="mongo-8.int",
        port=27018,
        database="crm",
        user="c7",
        password=SOURCE_PASSWORD,
    )


@pytest.mark.parametrize(
    ("told", "mode", "options"),
    [
        ({"tls": True, "tlsSkipVerify": True}, "insecure", {}),
        ({"tls": True}, "enable", {}),
        ({"uri": f"{URI}?tls=true&tlsInsecure=true"}, "insecure", {}),
        (
            {"uri": f"{URI}?ssl=true&directConnection=true&authSource=z"},
            "enable",
            {"authSource": "z", "directConnection": "true"},
        ),
        ({"uri": f"{URI}?ssl=true&tlsInsecure=true"}, "insecure", {}),
        ({"uri": f"{URI}?tls=false&tlsInsecure=true", "tls": True}, "enable", {}),
        (
            {"uri": f"{URI}?authSource=z", "tls": True, "authSource": "own"},
            "enable",
            {"authSource": "own"},
        ),
        (
            {"uri": URI, "authSource": "own", "directConnection": True},
            "",
            {"authSource": "own", "directConnection": "true"},
        ),
        ({"uri": f"{URI}?directConnection=false", "directConnection": True}, "", {}),
        ({"uri": f"{URI}?TLS=true&AuthSource=z"}, "enable", {"authSource": "z"}),
        ({"uri": "mongodb+srv://a.test/"}, "enable", {}),
        ({"uri": "mongodb+srv://a.test/?tls=false"}, "", {}),
        ({"uri": f"{URI}?tls=TRUE"}, "", {}),
        ({"tls": False}, "", {}),
    ],
)
def test_mongodbs_tls(told: dict[str, Any], mode: str, options: dict[str, str]) -> None:
    found = mongo(**told)
    assert (found.ssl_mode, found.options) == (mode, options)
    assert (found.host, found.port, found.database) == ("mongo-8.int", 27018, "crm")
    assert (found.user, found.password) == ("c7", SOURCE_PASSWORD)


@pytest.mark.parametrize("mode", ["", "disable", "prefer", "verify-ca", "verify-full"])
def test_postgresqls_modes_are_taken_as_they_are(mode: str) -> None:
    found = postgresql(sslmode=mode, schema="own", sslrootcert="/ca", sslcert="/c", sslkey="/k")
    assert (found.ssl_mode, found.schema) == (mode, "own")
    assert (found.ca, found.cert, found.key) == ("/ca", "/c", "/k")


@pytest.mark.parametrize("mode", ["REQUIRE", "on", "canary"])
def test_a_mode_that_is_none_never_becomes_a_weaker_one(mode: str) -> None:
    with pytest.raises(TenantNotConfigured, match=r"sslmode is none of PostgreSQL's$"):
        postgresql(sslmode=mode)


@pytest.mark.parametrize(
    ("module", "what"),
    [
        ({}, "the module has neither postgresql nor mongodb"),
        ({"postgresqlReplica": POSTGRESQL}, "the module has neither postgresql nor mongodb"),
        ({"postgresql": POSTGRESQL | {"host": ""}}, "postgresql.host is missing"),
        ({"postgresql": POSTGRESQL | {"port": 0}}, "postgresql.port must be a port number"),
        ({"postgresql": POSTGRESQL | {"database": None}}, "postgresql.database is missing"),
        ({"mongodb": SOURCE_MONGO | {"host": None}}, "mongodb.host is missing"),
        (
            {"mongodb": SOURCE_MONGO | {"database": "a b"}},
            "mongodb.database must be a database's name",
        ),
        (
            {"mongodb": SOURCE_MONGO | {"uri": "http://x"}},
            "mongodb.uri must begin with mongodb:// or mongodb+srv://",
        ),
    ],
)
def test_what_is_missing_is_told(module: dict[str, Any], what: str) -> None:
    with pytest.raises(TenantNotConfigured) as caught:
        place(**module)
    assert caught.value.what == what


def test_one_module_that_cannot_be_used_leaves_the_others() -> None:
    body = a_body(
        service="ledger",
        databases={"a": {}, "b": {"postgresql": POSTGRESQL}, "c": None, "canary\n": None},
    )
    sources = service_sources(body, tenant_id="acme-7", service="ledger")
    assert sources.place("b").database == "ledger"
    assert list(secrets_of_sources(sources)) == [SOURCE_PASSWORD, ""]
    with pytest.raises(TenantNotConfigured) as caught:
        sources.place("d")
    assert caught.value.what == "no module d of the service ledger; available: a, b, c"


def test_of_a_service_without_databases_none_is_available() -> None:
    body = a_body(service="ledger", databases=None)
    with pytest.raises(TenantNotConfigured, match=r"available: none$"):
        service_sources(body, tenant_id="acme-7", service="ledger").place("crm")


def test_in_a_shared_database_a_user_of_its_own_tells_tenants_apart() -> None:
    assert place("schema", postgresql=POSTGRESQL).user == "t_44"
    with pytest.raises(TenantNotConfigured, match=r"username is missing, in a shared database$"):
        place("schema", postgresql=POSTGRESQL | {"username": None})
    with pytest.raises(TenantNotConfigured, match=r"tenants share is refused$"):
        place("schema", mongodb=SOURCE_MONGO)


def test_a_suspended_service_has_no_sources() -> None:
    with pytest.raises(TenantSuspended):
        service_sources(
            a_body(service="ledger", status="purged"), tenant_id="acme-7", service="ledger"
        )


@pytest.mark.parametrize(
    "databases",
    [
        {"m": "x"},
        {"m": {"postgresql": 7}},
        {"m": {"mongodb": SOURCE_MONGO | {"tls": "yes"}}},
        {"m": {"mongodb": SOURCE_MONGO | {"uri": f"{URI}?authSource=a%0Ab"}}},
        {"m": {"postgresql": POSTGRESQL | {"sslkey": "k" * 65537}}},
    ],
)
def test_members_of_other_types_make_the_answer_unreadable(databases: dict[str, Any]) -> None:
    with pytest.raises(TenantAnswerUnreadable):
        service_sources(
            a_body(service="ledger", databases=databases), tenant_id="acme-7", service="ledger"
        )
