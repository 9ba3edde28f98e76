"""Internal data sources from variables to opened results, and sealed fields on the way."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest

from tests.e2e.cluster import Api, embedded, opened
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess
from tests.unit.datasources.plugin_crm.sealing import (
    ANA,
    ENCRYPT_SECRET,
    HASH_SECRET,
    hashed,
    sealed,
)

ORGANISATIONS = ("0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b", "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0c")
PASSWORD = "canary p&=%w"


@pytest.fixture
def crm(mongo_uri: str, mongo_database: Callable[[], str]) -> dict[str, str]:
    """The variables of a database with two organisations' holders; one record is broken."""
    name = mongo_database()
    people = [("Ana Lima", "98765432100"), ("Größe", "111"), ("Bo", "222")]
    with pymongo.MongoClient[dict[str, Any]](mongo_uri, serverSelectionTimeoutMS=10_000) as client:
        for number, (person, document) in enumerate(people):
            client[name][f"holders_{ORGANISATIONS[number % 2]}"].insert_one(
                {
                    "_id": number,
                    "name": sealed(person),
                    "contact": {"primary_email": sealed(f"{number}@acme.test"), "fax": "1"},
                    "search": {"name": hashed(person), "document": hashed(document)},
                }
            )
        client[name]["broken_a1"].insert_many([{"name": ANA}, {"name": ANA[:-8]}])
    at = urlsplit(mongo_uri)
    return {
        "DATASOURCE_CRM_CONFIG_NAME": "plugin_crm",
        "DATASOURCE_CRM_TYPE": "mongodb",
        "DATASOURCE_CRM_HOST": str(at.hostname),
        "DATASOURCE_CRM_PORT": str(at.port),
        "DATASOURCE_CRM_DATABASE": name,
        "CRYPTO_HASH_SECRET_KEY_PLUGIN_CRM": HASH_SECRET,
        "CRYPTO_ENCRYPT_SECRET_KEY_PLUGIN_CRM": ENCRYPT_SECRET,
        "DATASOURCE_UNUSED_CONFIG_NAME": "midaz_transaction",
        "DATASOURCE_UNUSED_TYPE": "POSTGRESQL",
        "DATASOURCE_UNUSED_PASSWORD": PASSWORD,
    }


@pytest.fixture
def service(
    tmp_path: Path, crm: dict[str, str], shop: SqlAddress
) -> Iterator[tuple[FetcherProcess, Api]]:
    onboarding = {
        "DATASOURCE_ONB_CONFIG_NAME": "midaz_onboarding",
        "DATASOURCE_ONB_TYPE": "POSTGRESQL",
        "DATASOURCE_ONB_HOST": shop.host,
        "DATASOURCE_ONB_PORT": str(shop.port),
        "DATASOURCE_ONB_DATABASE": shop.database,
        "DATASOURCE_ONB_USER": shop.user,
        "DATASOURCE_ONB_PASSWORD": shop.password,
        "DATASOURCE_ONB_SSLMODE": "disable",
    }
    # the guard refuses loopback, but not to what the operator has written down
    with embedded(tmp_path, DATASOURCE_HOST_GUARD="on", **crm, **onboarding) as running:
        yield running


def test_jobs_on_internal_sources(service: tuple[FetcherProcess, Api], tmp_path: Path) -> None:
    process, api = service
    posted = api.post_job(
        {
            "plugin_crm": {"holders": ["name", "contact.primary_email"]},
            "midaz_onboarding": {"orders": ["id", "total"]},
        },
        {
            "plugin_crm": {"holders": {"document": {"in": ["98765432100", "222"]}}},
            "midaz_onboarding": {"orders": {"total": {"gte": [1099.00]}}},
        },
    )
    assert posted.status == 202, posted.body
    job = api.wait_for_job(posted.body["jobId"])
    assert job["status"] == "completed", job
    assert opened(tmp_path, posted.body["jobId"]) == {
        "midaz_onboarding": {"orders": [{"id": 9007199254741993, "total": "1100.00"}]},
        "plugin_crm": {
            "holders": [
                {"_id": 0, "name": "Ana Lima", "contact": {"primary_email": "0@acme.test"}},
                {"_id": 2, "name": "Bo", "contact": {"primary_email": "2@acme.test"}},
            ]
        },
    }

    assert refusal(api, {"midaz_transaction": {"t": ["a"]}}) == (
        "FET-1020",
        "internal datasource 'midaz_transaction' not configured via environment variables",
    )
    assert failure(api, {"plugin_crm": {"nothing": ["a"]}}) == {
        "code": "FET-0059",
        "source": "plugin_crm",
        "message": "plugin_crm: schema mismatch: missing tables nothing",
    }
    assert failure(api, {"plugin_crm": {"broken": ["name"]}}) == {
        "code": "FET-0065",
        "source": "plugin_crm",
        "stage": "rows",
        "reason": "decryption_failed record_2",
        "message": "plugin_crm: rows failed: decryption failed record 2 (broken.name)",
    }
    log = process.log()
    assert "DATASOURCE_UNUSED_HOST: is required" in log
    for secret in (
        HASH_SECRET,
        ENCRYPT_SECRET,
        PASSWORD,
        "Ana Lima",
        "98765432100",
        *ORGANISATIONS,
    ):
        assert secret not in log


def refusal(api: Api, fields: object) -> tuple[str, str]:
    answered = api.post_job(fields)
    assert answered.status == 400
    return answered.body["code"], answered.body["message"]


def failure(api: Api, fields: object) -> Any:
    job = api.wait_for_job(api.post_job(fields).body["jobId"])
    assert job["status"] == "failed"
    assert job["metadata"]["error"] == job["error"]["message"]
    return job["error"]


def test_without_keys_only_jobs_that_need_them_fail(tmp_path: Path, crm: dict[str, str]) -> None:
    keyless = {name: value for name, value in crm.items() if not name.startswith("CRYPTO_")}
    with embedded(tmp_path, **keyless) as (_, api):
        posted = api.post_job({"plugin_crm": {"holders": ["contact.fax"]}})
        assert api.wait_for_job(posted.body["jobId"])["status"] == "completed"
        rows = opened(tmp_path, posted.body["jobId"])["plugin_crm"]["holders"]
        assert rows == [{"_id": number, "contact": {"fax": "1"}} for number in (0, 2, 1)]
        assert failure(api, {"plugin_crm": {"holders": ["name"]}})["code"] == "FET-0058"
