"""A canary in every secret: jobs that fail at every stage and servers that refuse us tell none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from fetcher.settings import Settings
from tests.e2e.cluster import KEY, Api, Cluster, embedded
from tests.e2e.failing_view import ROW
from tests.e2e.test_embedded import make_shop
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess, http_status
from tests.servers.waiting import eventually_sync

pytestmark = pytest.mark.e2e

CANARY = "canary-7f3a"
PASSWORD = f"{CANARY}-of-a-connection"
OF_OTHER_FORM = {"APP_ENC_KEY", "APP_ENC_KEY_PREVIOUS", "MONGO_URI"}


def secrets() -> dict[str, str]:
    """Every secret setting that is a free text."""
    names = [n.upper() for n, f in Settings.model_fields.items() if f.annotation is SecretStr]
    return {name: f"{CANARY}-{name}" for name in names if name not in OF_OTHER_FORM}


def records(process: FetcherProcess) -> Iterator[dict[str, Any]]:
    for line in process.output_path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def connect(api: Api, name: str, **changes: object) -> None:
    body = {"configName": name, "password": PASSWORD, "userName": "reader", **changes}
    made = api.connect(body)
    assert made.status == 201, made.body


def failed(api: Api, fields: object, **options: object) -> dict[str, Any]:
    request: dict[str, Any] = {"mappedFields": fields}
    if options:
        request["options"] = {"limits": options}
    body = {"dataRequest": request, "metadata": {"source": "acme-reports"}}
    posted = api.call("POST", "/v1/fetcher", body)
    assert posted.status == 202, posted.body
    job = api.wait_for_job(posted.body["jobId"])
    assert job["status"] == "failed", job
    error: dict[str, Any] = job["error"]
    return error


def test_a_job_that_fails_at_any_stage_tells_no_secret_and_no_row(
    tmp_path: Path, broken: SqlAddress, mariadb: SqlAddress
) -> None:
    given = secrets()
    token = given["FETCHER_ACCESS_TOKEN"]
    environment = given | {
        "APP_ENC_KEY": KEY,
        "LOG_LEVEL": "debug",
        "JOB_PREFLIGHT_TEST": "false",
        "DATASOURCE_INCLUDE_VIEWS": "true",
    }
    with embedded(tmp_path, **environment) as (process, open_api):
        make_shop(tmp_path)
        api = Api(open_api.port, token)
        postgres = {"type": "POSTGRESQL", "databaseName": broken.database, "port": broken.port}
        connect(api, "dns_db", **postgres, host="no-such-host.invalid")
        connect(api, "tcp_db", **postgres | {"port": 1}, host="127.0.0.1")
        connect(
            api,
            "auth_db",
            type="MYSQL",
            host=mariadb.host,
            port=mariadb.port,
            databaseName="mysql",
            userName="nobody-of-this-name",
        )
        connect(api, "rows_db", **postgres, host=broken.host, userName=broken.user)
        connect(api, "shop", type="SQLITE", databaseName="shop.db")
        assert failed(api, {"dns_db": {"t": ["x"]}})["stage"] == "dns"
        assert failed(api, {"tcp_db": {"t": ["x"]}})["stage"] == "tcp"
        assert failed(api, {"auth_db": {"t": ["x"]}})["stage"] == "auth"
        assert failed(api, {"rows_db": {"gone": ["x"]}})["code"] == "validation"
        assert failed(api, {"rows_db": {"numbers": ["id", "n"]}})["stage"] in ("query", "rows")
        too_much = failed(api, {"shop": {"items": ["id", "name"]}}, maxResultBytes=10)
        assert too_much["code"] == "limit_exceeded"
        objects = tmp_path / "fetcher-data" / "objects"
        objects.rename(objects.with_name("moved"))
        objects.write_bytes(b"")
        stored = failed(api, {"shop": {"items": ["id"]}})
        assert stored["code"].startswith("storage_")
    log = process.log()
    assert log.count('"msg":"job_ended"') == 7
    assert CANARY not in log
    assert KEY not in log
    assert ROW not in log
    ended = [record for record in records(process) if record["msg"] == "job_ended"]
    assert all({"job_id", "request_id", "outcome"} <= record.keys() for record in ended)


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_servers_that_refuse_us_have_no_secret_told(
    cluster: Cluster, redis_url: str, role: str
) -> None:
    host, _, port = redis_url.removeprefix("redis://").partition("/")[0].partition(":")
    scheme, _, place = cluster.mongo_uri.partition("://")
    refused = secrets() | {
        "MONGO_URI": f"{scheme}://reader:{CANARY}-uri@{place}",
        "RABBITMQ_DEFAULT_USER": "nobody-of-this-name",
        "LOG_LEVEL": "debug",
    }
    if role == "manager":
        refused |= {"REDIS_HOST": host, "REDIS_PORT": port or "6379"}
    cluster.changes = refused
    start = cluster.worker if role == "worker" else cluster.manager
    with start(waits=False) as (process, api):
        url = f"http://127.0.0.1:{api.port}/readyz"
        eventually_sync(
            lambda: http_status(url) == 503, deadline_seconds=40, what="it says what is not there"
        )
        checks = Api(api.port).call("GET", "/readyz").body["checks"]
        assert checks["rabbitmq"]["status"] == "down"
        process.wait_until(lambda p: "startup_self_probe_failed" in p.log(), deadline_seconds=30)
        log = process.log()
    assert CANARY not in json.dumps(checks)
    assert CANARY not in log
