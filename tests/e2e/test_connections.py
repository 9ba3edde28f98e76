"""A connection's life over HTTP: mended, compared with its database, renamed, deleted."""

from pathlib import Path
from typing import Any

import psycopg

from fetcher.domain.internal_sources import internal_source_id
from tests.e2e.cluster import Answer, Api, embedded, opened, postgres_connection
from tests.servers.addresses import SqlAddress

ROOT = "/v1/management/connections"
FIELDS: dict[str, Any] = {"sales_db": {"public.orders": ["id", "total"]}}


def validate(api: Api, mapped: object) -> Answer:
    return api.call("POST", f"{ROOT}/validate-schema", {"mappedFields": mapped})


def test_a_connection_from_a_mistake_to_its_end(tmp_path: Path, shop: SqlAddress) -> None:
    internal = {
        "DATASOURCE_ONB_CONFIG_NAME": "midaz_onboarding",
        "DATASOURCE_ONB_TYPE": "POSTGRESQL",
        "DATASOURCE_ONB_HOST": shop.host,
        "DATASOURCE_ONB_PORT": str(shop.port),
        "DATASOURCE_ONB_DATABASE": shop.database,
        "DATASOURCE_ONB_USER": shop.user,
        "DATASOURCE_ONB_PASSWORD": shop.password,
    }
    with embedded(tmp_path, **internal) as (_, api):
        created = api.connect(postgres_connection(shop, databaseName="no_such_database"))
        one = f"{ROOT}/{created.body['id']}"
        missing = api.call("POST", f"{one}/test")
        assert (missing.status, missing.body["reason"]) == (500, "database_missing")
        assert validate(api, FIELDS).body["errors"] == [
            {"type": "DATA_SOURCE_DOWN", "dataSourceId": "sales_db"}
        ]
        mended = api.call("PATCH", one, {"databaseName": shop.database})
        assert mended.status == 200, mended.body
        assert mended.body["updatedAt"] > created.body["updatedAt"]
        assert api.call("POST", f"{one}/test").status == 200

        assert validate(api, FIELDS | {"midaz_onboarding": {"orders": ["*"]}}).status == 200
        asked = {"sales_db": {"orders": ["id", "colour"], "s2.orders": ["id"]}, "hr_db": {"t": []}}
        assert validate(api, asked).body["errors"] == [
            {"type": "DATA_SOURCE_NOT_FOUND", "dataSourceId": "hr_db"},
            {
                "type": "FIELD_NOT_FOUND",
                "dataSourceId": "sales_db",
                "table": "orders",
                "field": "colour",
            },
            {"type": "TABLE_NOT_FOUND", "dataSourceId": "sales_db", "table": "s2.orders"},
        ]
        remembered_until_the_connection_changes(api, one, shop)
        a_job_reads_from_the_renamed_one(api, one, tmp_path)

        onboarding = f"{ROOT}/{internal_source_id('midaz_onboarding')}"
        assert [t["name"] for t in api.call("GET", f"{onboarding}/schema").body["tables"]] == [
            "orders"
        ]
        assert api.call("DELETE", onboarding).status == 404

        gone = api.call("DELETE", one)
        assert (gone.status, gone.body) == (204, None)
        assert [api.call(method, one).status for method in ("GET", "DELETE")] == [404, 404]
        assert api.connect(postgres_connection(shop, configName="shop_db")).status == 201


def remembered_until_the_connection_changes(api: Api, one: str, shop: SqlAddress) -> None:
    tables = {"sales_db": {"orders": ["colour"]}}
    assert validate(api, tables).status == 422
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute("ALTER TABLE orders ADD COLUMN colour text")
    assert validate(api, tables).status == 422
    assert api.call("PATCH", one, {"metadata": {"team": "bi"}}).status == 200
    assert validate(api, tables).status == 200


def a_job_reads_from_the_renamed_one(api: Api, one: str, folder: Path) -> None:
    taken = api.call("PATCH", one, {"configName": "midaz_onboarding"})
    assert (taken.status, taken.body["code"]) == (409, "FET-1002")
    assert api.call("PATCH", one, {"configName": "shop_db"}).status == 200
    assert api.post_job(FIELDS).body["code"] == "FET-1020"
    fields = {"shop_db": {"orders": ["id"]}}
    posted = api.post_job(fields, {"shop_db": {"orders": {"total": {"eq": [1.10]}}}})
    assert posted.status == 202, posted.body
    assert api.wait_for_job(posted.body["jobId"])["status"] == "completed"
    result = opened(folder, posted.body["jobId"])
    assert result == {"shop_db": {"orders": [{"id": 9007199254740994}]}}
