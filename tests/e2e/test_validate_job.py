"""A job is tried over the real command's own API: planned, refused, and never made."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.e2e.cluster import PRODUCT, embedded
from tests.e2e.test_embedded import make_shop, register


def body(**fields: list[str]) -> dict[str, object]:
    return {"dataRequest": {"mappedFields": {"shop": fields}}, "metadata": {"source": PRODUCT}}


def test_a_job_is_tried_before_it_is_made(tmp_path: Path) -> None:
    with embedded(tmp_path) as (_, api):
        make_shop(tmp_path)
        with closing(sqlite3.connect(tmp_path / "fetcher-data" / "sources" / "shop.db")) as shop:
            shop.execute("ANALYZE")
        register(api)
        path = "/v1/fetcher/validate"
        tried = api.call("POST", path, body(items=["*"]))
        assert tried.status == 200
        assert tried.body["sources"] == {
            "shop": {
                "type": "SQLITE",
                "tables": {
                    "items": {"fields": ["id", "name", "picture", "price"], "estimatedRows": 3}
                },
            }
        }
        missing = api.call("POST", path, body(items=["id", "colour"], nothing=["id"]))
        assert missing.status == 422
        assert missing.body["errors"] == [
            {
                "type": "FIELD_NOT_FOUND",
                "dataSourceId": "shop",
                "table": "items",
                "field": "colour",
            },
            {"type": "TABLE_NOT_FOUND", "dataSourceId": "shop", "table": "nothing"},
        ]
        assert api.call("GET", "/v1/fetcher").body["items"] == []
        # the job of the same request reads what was told
        posted = api.call("POST", "/v1/fetcher", body(items=["*"]))
        job = api.wait_for_job(posted.body["jobId"])
        assert (job["status"], job["rowCount"]) == ("completed", 3)
        assert job["requestHash"] == tried.body["requestHash"]
