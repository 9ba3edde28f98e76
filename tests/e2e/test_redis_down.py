"""A manager whose Redis goes away; spec rest-api 17.4, "Redis down"."""

import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Api, embedded
from tests.e2e.test_embedded import make_shop, register
from tests.servers.processes import http_status
from tests.servers.redis_servers import own_redis
from tests.servers.waiting import eventually_sync


def metrics(api: Api) -> str:
    address = f"http://127.0.0.1:{api.port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def redis_entry(api: Api) -> Any:
    """Readiness is 200 whatever it says of Redis."""
    ready = api.call("GET", "/readyz")
    assert (ready.status, ready.body["status"]) == (200, "healthy")
    assert ready.body["checks"]["redis"]["tls"] is False
    return ready.body["checks"]["redis"]


def test_the_limit_holds_without_redis_and_readiness_tells_of_it(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with own_redis(tmp_path / "redis") as redis:
        redis.kill()
        changes = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis.address.port)}
        # it is awaited that /health is 200
        with embedded(tmp_path, **changes, ALLOW_INSECURE_TLS="true") as (_, api):
            make_shop(tmp_path)
            first, second = (
                f"/v1/management/connections/{register(api, configName=name).body['id']}"
                for name in ("shop", "shop_2")
            )
            assert 'selfprobe_result{dep="redis"} 0.0' in metrics(api)
            assert redis_entry(api)["status"] == "down"
            assert api.call("POST", f"{first}/test").status == 200

            redis.start()
            eventually_sync(
                lambda: api.call("POST", f"{first}/test").status and redis.client.keys(),
                deadline_seconds=20,
                what="redis is used",
            )
            key = f"fetcher:ratelimit:connection-test:{first.rpartition('/')[2]}"
            assert redis.client.keys() == [key.encode()]
            assert redis_entry(api)["status"] == "up"
            assert "fetcher_redis_away 0.0" in metrics(api)

            redis.kill()
            answers = [api.call("POST", f"{second}/test") for _ in range(11)]
            assert [answer.status for answer in answers] == [200] * 10 + [429]
            told = {name.lower(): value for name, value in answers[-1].headers.items()}
            assert 1 <= int(told["retry-after"]) <= 6
            entry = redis_entry(api)
            assert (entry["status"], entry["reason"]) == ("down", "serving from process memory")
            assert http_status(f"http://127.0.0.1:{api.port}/health") == 200
            assert "fetcher_redis_away 1.0" in metrics(api)
