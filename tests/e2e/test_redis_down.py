"""A manager whose Redis goes away; spec rest-api 17.4, "Redis down"."""

import urllib.request
from pathlib import Path

from tests.e2e.cluster import Api, embedded
from tests.e2e.test_embedded import make_shop, register
from tests.servers.processes import http_status
from tests.servers.redis_servers import own_redis
from tests.servers.waiting import eventually_sync


def metrics(api: Api) -> str:
    address = f"http://127.0.0.1:{api.port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_the_limit_holds_without_redis_and_readiness_tells_of_it(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with (
        own_redis(tmp_path / "redis") as redis,
        embedded(
            tmp_path,
            REDIS_HOST="127.0.0.1",
            REDIS_PORT=str(redis.address.port),
            ALLOW_INSECURE_TLS="true",
        ) as (_, api),
    ):
        make_shop(tmp_path)
        made = register(api)
        test = f"/v1/management/connections/{made.body['id']}/test"
        assert api.call("POST", test).status == 200
        key = f"fetcher:ratelimit:connection-test:{made.body['id']}"
        assert redis.client.keys() == [key.encode()]
        ready = api.call("GET", "/readyz")
        assert ready.body["checks"]["redis"]["status"] == "up"
        assert ready.body["checks"]["redis"]["tls"] is False
        assert "fetcher_redis_away 0.0" in metrics(api)

        redis.kill()
        answers = [api.call("POST", test) for _ in range(11)]
        assert [answer.status for answer in answers] == [200] * 10 + [429]
        told = {name.lower(): value for name, value in answers[-1].headers.items()}
        assert 1 <= int(told["retry-after"]) <= 6
        ready = api.call("GET", "/readyz")
        assert (ready.status, ready.body["status"]) == (200, "healthy")
        entry = ready.body["checks"]["redis"]
        assert (entry["status"], entry["tls"]) == ("down", False)
        assert entry["reason"] == "serving from process memory"
        assert http_status(f"http://127.0.0.1:{api.port}/health") == 200
        assert "fetcher_redis_away 1.0" in metrics(api)

        redis.start()
        eventually_sync(
            lambda: api.call("POST", test).status and redis.client.keys(),
            deadline_seconds=20,
            what="redis is used again",
        )
        assert "fetcher_redis_away 0.0" in metrics(api)
        assert api.call("GET", "/readyz").body["checks"]["redis"]["status"] == "up"
