"""Where a tenant's things lie, out of the Tenant Manager's answers."""

import json
from typing import Any

import pytest

from fetcher.domain.tenants import (
    BrokerPlace,
    MongoPlace,
    TenantAnswerUnreadable,
    TenantConfig,
    TenantNotConfigured,
    TenantSuspended,
)
from fetcher.tenancy.manager_answers import active_tenants, secrets_of_config, tenant_config
from tests.unit.tenancy.answers import BROKER, BROKER_PASSWORD, MONGO, MONGO_PASSWORD, a_body


def read(*, module: str = "fetcher-worker", **changed: Any) -> TenantConfig:
    return tenant_config(a_body(**changed), tenant_id="acme-7", broker_module=module)


def with_mongo(**changed: Any) -> TenantConfig:
    return read(databases={"fetcher": {"mongodb": MONGO | changed}})


def with_broker(**changed: Any) -> TenantConfig:
    return read(messaging={"rabbitmq": BROKER | changed})


def lacking(**changed: Any) -> str:
    with pytest.raises(TenantNotConfigured) as caught:
        read(**changed)
    return caught.value.what


def test_the_specifications_example() -> None:
    assert read() == TenantConfig(
        tenant_id="acme-7",
        database=MongoPlace(
            database="Fetcher_acme7",
            host="mongo-7.int",
            port=27017,
            user="u7",
            password=MONGO_PASSWORD,
            auth_source="admin",
            max_pool_size=60,
            tls=True,
            tls_ca_file="/etc/tm/ca.pem",
        ),
        broker=BrokerPlace(
            host="mq-7.int",
            port=5671,
            vhost="tenant_acme7",
            user="w7",
            password=BROKER_PASSWORD,
            tls=True,
        ),
    )


def test_the_modules_broker_comes_first() -> None:
    newer = {
        "fetcher-worker": BROKER | {"vhost": "of-the-worker"},
        "fetcher-manager": BROKER | {"vhost": "of-the-manager"},
    }
    assert read(rabbitmq=newer).broker.vhost == "of-the-worker"
    assert read(rabbitmq=newer, module="fetcher-manager").broker.vhost == "of-the-manager"
    assert read(rabbitmq=newer, module="another").broker.vhost == "tenant_acme7"
    assert read(rabbitmq={"fetcher-worker": None}).broker.vhost == "tenant_acme7"
    assert read(rabbitmq=newer, messaging=None).broker.vhost == "of-the-worker"


def test_a_broken_broker_of_the_module_is_not_passed_over() -> None:
    newer = {"fetcher-worker": BROKER | {"vhost": ""}}
    assert lacking(rabbitmq=newer) == "rabbitmq.fetcher-worker.vhost is missing"


@pytest.mark.parametrize("tls", [True, False, None])
def test_a_brokers_tls_may_be_left_open(tls: bool | None) -> None:
    assert with_broker(tls=tls).broker.tls is tls


def test_an_address_needs_no_host() -> None:
    place = with_mongo(uri="mongodb+srv://a.test/?tls=true", host=None, port=None).database
    assert (place.uri, place.host, place.port) == ("mongodb+srv://a.test/?tls=true", "", None)


@pytest.mark.parametrize(
    ("told", "used"), [(None, 100), (0, 100), (-5, 100), (1, 1), (60, 60), (10**30, 1000)]
)
def test_a_pools_size_is_bounded(told: int | None, used: int) -> None:
    assert with_mongo(maxPoolSize=told).database.max_pool_size == used


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"databases": None}, "databases.fetcher.mongodb is missing"),
        ({"databases": {}}, "databases.fetcher.mongodb is missing"),
        ({"databases": {"fetcher": {"postgresql": {}}}}, "databases.fetcher.mongodb is missing"),
        ({"databases": {"other": {"mongodb": MONGO}}}, "databases.fetcher.mongodb is missing"),
        ({"messaging": None}, "messaging.rabbitmq is missing"),
        ({"messaging": {"rabbitmq": None}}, "messaging.rabbitmq is missing"),
    ],
)
def test_what_is_missing_is_told(changed: dict[str, Any], what: str) -> None:
    assert lacking(**changed) == what


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"host": " "}, "host is missing"),
        ({"host": None}, "host is missing"),
        ({"port": None}, "port must be a port number"),
        ({"port": 65536}, "port must be a port number"),
        ({"database": None}, "database must be a database's name"),
        ({"database": "a/b"}, "database must be a database's name"),
        ({"database": "a" * 64}, "database must be a database's name"),
        ({"database": "admin"}, "database must be no database of the server's own"),
        ({"database": "local"}, "database must be no database of the server's own"),
        ({"uri": "postgres://canary"}, "uri must begin with mongodb:// or mongodb+srv://"),
        ({"uri": "mongodb://[canary"}, "uri must begin with mongodb:// or mongodb+srv://"),
    ],
)
def test_a_database_without_an_address_is_told(changed: dict[str, Any], what: str) -> None:
    told = lacking(databases={"fetcher": {"mongodb": MONGO | changed}})
    assert told == f"databases.fetcher.mongodb.{what}"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"host": None}, "host is missing"),
        ({"vhost": ""}, "vhost is missing"),
        ({"port": 0}, "port must be a port number"),
        ({"port": -1}, "port must be a port number"),
    ],
)
def test_a_broker_without_an_address_is_told(changed: dict[str, Any], what: str) -> None:
    assert lacking(messaging={"rabbitmq": BROKER | changed}) == f"messaging.rabbitmq.{what}"


@pytest.mark.parametrize("mode", ["schema", "SCHEMA", "shared", "canary"])
def test_a_database_that_tenants_share_is_refused(mode: str) -> None:
    what = "isolationMode must be isolated: a shared database is refused"
    assert lacking(isolationMode=mode) == what


@pytest.mark.parametrize("mode", [None, "", "isolated", "database", "Isolated"])
def test_one_of_its_own_is_not(mode: str | None) -> None:
    assert read(isolationMode=mode).database.database == "Fetcher_acme7"


@pytest.mark.parametrize("status", ["suspended", "purged", "Suspended"])
def test_a_status_in_the_answer_suspends(status: str) -> None:
    with pytest.raises(TenantSuspended) as caught:
        read(status=status)
    assert caught.value.status == status.lower()


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "beta-2"},
        {"service": "ledger"},
        {"id": 7},
        {"databases": []},
        {"databases": {"fetcher": "x"}},
        {"databases": {"fetcher": {"mongodb": [MONGO]}}},
        {"databases": {f"m{number}": None for number in range(201)}},
        {"messaging": "x"},
        {"rabbitmq": {"fetcher-worker": 1}},
        {"status": True},
        {"isolationMode": {}},
    ],
)
def test_answers_about_somebody_else_or_of_other_types_are_unreadable(
    changed: dict[str, Any],
) -> None:
    with pytest.raises(TenantAnswerUnreadable):
        read(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"port": "27017"},
        {"port": True},
        {"port": 27017.5},
        {"tls": "true"},
        {"tls": 1},
        {"host": 7},
        {"host": "a\nb"},
        {"username": "a" * 4097},
        {"password": ["x"]},
        {"uri": {}},
        {"maxPoolSize": "60"},
    ],
)
def test_members_of_other_types_are_unreadable(changed: dict[str, Any]) -> None:
    with pytest.raises(TenantAnswerUnreadable):
        with_mongo(**changed)


def test_a_uuid_is_the_same_tenant_however_it_is_written() -> None:
    dashed = "0197CA00-1111-7222-8333-444455556666"
    body = a_body(id=dashed.replace("-", "").lower())
    assert tenant_config(body, tenant_id=dashed, broker_module="x").tenant_id == dashed
    other = a_body(id="0197ca00111172228333444455556667")
    with pytest.raises(TenantAnswerUnreadable):
        tenant_config(other, tenant_id=dashed, broker_module="x")


def test_secrets_are_all_of_a_configurations() -> None:
    uri = "mongodb://u:p%40ss@a.test/?authMechanismProperties=AWS_SESSION_TOKEN:x"
    found = set(secrets_of_config(with_mongo(uri=uri)))
    assert found == {MONGO_PASSWORD, BROKER_PASSWORD, uri, "p%40ss", "p@ss"}


def test_no_secret_is_in_a_configurations_text() -> None:
    told = repr(with_mongo(uri="mongodb://u:canary@a.test/"))
    assert "canary" not in told


@pytest.mark.parametrize(
    ("entries", "ids", "strange"),
    [
        (None, [], 0),
        ([], [], 0),
        ([None, {"id": ""}, {"id": "  "}, {"id": None}, {}], [], 0),
        ([{"id": "a", "name": "A"}, {"id": "b"}, {"id": "a"}], ["a", "b"], 0),
        ([{"id": "a b"}, {"id": "é"}, {"id": "a" * 257}, {"id": "ok"}], ["ok"], 3),
    ],
)
def test_ids_of_a_list(entries: Any, ids: list[str], strange: int) -> None:
    found = active_tenants(json.dumps(entries).encode())
    assert (list(found.ids), found.strange) == (ids, strange)


@pytest.mark.parametrize("value", [{}, "x", 7, ["acme"], [{"id": 7}], [[]]])
def test_a_list_of_other_types_is_unreadable(value: Any) -> None:
    with pytest.raises(TenantAnswerUnreadable):
        active_tenants(json.dumps(value).encode())
