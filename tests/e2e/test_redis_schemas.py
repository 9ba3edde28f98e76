"""Schemas that managers remember in Redis (spec rest-api 8.6, 8.8, 8.9, 12.4)."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.e2e.cluster import Api, embedded
from tests.e2e.test_embedded import make_shop, register
from tests.servers.redis_servers import OwnRedis, own_redis

ASKED = {"mappedFields": {"shop": {"items": ["id", "colour"]}}}
KEY = b"fetcher:schema:shop"


def add_colour(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "fetcher-data" / "sources" / "shop.db")) as shop, shop:
        shop.execute("ALTER TABLE items ADD COLUMN colour")


def is_valid(api: Api) -> bool:
    answer = api.call("POST", "/v1/management/connections/validate-schema", ASKED)
    assert answer.status in (200, 422), answer.body
    return answer.status == 200


def fields_of(api: Api, path: str) -> list[str]:
    [table] = api.call("GET", f"{path}/schema").body["tables"]
    return list(table["fields"])


def test_a_schema_is_remembered_until_its_connection_changes(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with (
        own_redis(tmp_path / "redis") as redis,
        embedded(
            tmp_path,
            REDIS_HOST=f"127.0.0.1:{redis.address.port}",
            ALLOW_INSECURE_TLS="true",
        ) as (_, api),
    ):
        make_shop(tmp_path)
        path = f"/v1/management/connections/{register(api).body['id']}"
        assert "colour" not in fields_of(api, path)
        assert not redis.client.exists(KEY)
        assert not is_valid(api)
        assert redis.client.hlen(KEY) == 1
        assert 290 < redis.client.ttl(KEY) <= 300

        add_colour(tmp_path)
        # the schema itself is read anew, what is remembered stays what it was
        assert "colour" in fields_of(api, path)
        assert not is_valid(api)
        changed_and_read_anew(api, redis, path)

        assert api.call("DELETE", path).status == 204
        assert not redis.client.exists(KEY)


def changed_and_read_anew(api: Api, redis: OwnRedis, path: str) -> None:
    patched = api.call("PATCH", path, {"databaseName": "shop.db"})
    assert patched.status == 200, patched.body
    assert not redis.client.exists(KEY)
    assert is_valid(api)
    assert redis.client.hlen(KEY) == 1
