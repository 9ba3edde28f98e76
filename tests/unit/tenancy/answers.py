"""Answers of the Tenant Manager for tests, as spec configuration 11.4 shows them."""

import json
from typing import Any, Final

MONGO_PASSWORD: Final = "canary-of-mongo"
BROKER_PASSWORD: Final = "canary-of-the-broker"
SOURCE_PASSWORD: Final = "canary-of-the-source"

MONGO: Final[dict[str, Any]] = {
    "host": "mongo-7.int",
    "port": 27017,
    "database": "Fetcher_acme7",
    "username": "u7",
    "password": MONGO_PASSWORD,
    "uri": "",
    "authSource": "admin",
    "directConnection": False,
    "maxPoolSize": 60,
    "tls": True,
    "tlsCAFile": "/etc/tm/ca.pem",
    "tlsCertFile": "",
    "tlsKeyFile": "",
    "tlsSkipVerify": False,
}
BROKER: Final[dict[str, Any]] = {
    "host": "mq-7.int",
    "port": 5671,
    "vhost": "tenant_acme7",
    "username": "w7",
    "password": BROKER_PASSWORD,
    "tls": True,
    "tlsCAFile": "",
}
POSTGRESQL: Final[dict[str, Any]] = {
    "host": "pg-7.int",
    "port": 5432,
    "database": "ledger",
    "username": "t_44",
    "password": SOURCE_PASSWORD,
    "schema": "",
    "sslmode": "require",
}
SOURCE_MONGO: Final[dict[str, Any]] = {
    "host": "mongo-8.int",
    "port": 27018,
    "database": "crm",
    "username": "c7",
    "password": SOURCE_PASSWORD,
}


def an_answer(**changed: Any) -> dict[str, Any]:
    """For our own service; a member that is None is left out."""
    answer: dict[str, Any] = {
        "id": "acme-7",
        "tenantSlug": "acme-seven",
        "tenantName": "Acme Seven",
        "service": "fetcher",
        "status": "active",
        "isolationMode": "isolated",
        "databases": {"fetcher": {"mongodb": MONGO}},
        "messaging": {"rabbitmq": BROKER},
        "connectionSettings": {"maxOpenConns": 20, "statementTimeout": "30s"},
        "createdAt": "2026-01-10T08:00:00Z",
    } | changed
    return {name: value for name, value in answer.items() if value is not None}


def a_body(**changed: Any) -> bytes:
    return json.dumps(an_answer(**changed)).encode()


def a_ledger_body(**modules: Any) -> bytes:
    """For the service of internal sources."""
    return a_body(service="ledger", databases=modules, messaging=None)
