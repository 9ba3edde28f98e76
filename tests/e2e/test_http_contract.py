"""The served API document against the service: schemathesis with all checks, and no status that
the document does not name."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.cluster import Api, Cluster, embedded
from tests.e2e.http_contract.hooks import REPLACED
from tests.scale import scale_factor, scaled
from tests.servers.addresses import SqlAddress
from tests.servers.redis_servers import own_redis

TOKEN = "token-of-the-contract"
ROOT = Path(__file__).parents[2]
CONFIG = Path(__file__).with_name("http_contract") / "schemathesis.toml"
WITHOUT_END = "job_events"
"""A stream answers for as long as it is read: tests/unit/api/test_event_stream.py checks it."""


def check_contract(api: Api, known: Mapping[str, str], *, examples: int) -> None:
    """Run all checks, and fail with whatever any of them has found."""
    phases = "examples,fuzzing,stateful"
    if scale_factor() > 1:
        # thousands of cases at every boundary of every schema
        phases = f"{phases},coverage"
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG)),
        *("run", f"http://127.0.0.1:{api.port}/openapi.json", "--checks", "all"),
        *("--exclude-checks", ",".join(REPLACED), "--exclude-operation-id", WITHOUT_END),
        *("--phases", phases, "--max-examples", str(examples), "--continue-on-failure"),
        *("--request-timeout", "20", "--no-color"),
        *(["--header", f"Authorization: Bearer {api.token}"] if api.token else []),
        # a nightly run looks elsewhere every time
        *([] if scale_factor() > 1 else ["--seed", "20260314"]),
    ]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.e2e.http_contract.hooks", **known},
        capture_output=True,
        text=True,
        timeout=240 * max(1, scale_factor()),
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-2_000:]
    tested = re.search(r"Tested: ([0-9]+)", ended.stdout)
    described = api.call("GET", "/openapi.json").body["paths"].values()
    operations = sum(len(methods) for methods in described)
    assert tested is not None
    # but for the stream, and the document itself, which schemathesis has read already
    assert int(tested[1]) == operations - 2, ended.stdout


def make_orders(folder: Path) -> None:
    """What the document's example asks for."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, status TEXT)")
        shop.executemany(
            "INSERT INTO orders VALUES (?, ?, 'paid')", [(n, 1.5 * n) for n in range(50)]
        )


def with_an_ended_job(api: Api, connection: dict[str, object]) -> dict[str, str]:
    """A connection that the document's examples name, and a job with a result; their ids."""
    made = api.connect({"configName": "sales_db", **connection})
    assert made.status == 201
    job = api.wait_for_job(api.post_job({"sales_db": {"orders": ["id", "total"]}}).body["jobId"])
    assert job["status"] == "completed", job
    return {"FETCHER_CONTRACT_CONNECTION_ID": made.body["id"], "FETCHER_CONTRACT_JOB_ID": job["id"]}


@pytest.mark.e2e
def test_embedded_service_keeps_what_its_document_says(tmp_path: Path) -> None:
    with embedded(tmp_path, FETCHER_ACCESS_TOKEN=TOKEN) as (process, open_api):
        api = Api(open_api.port, TOKEN)
        make_orders(tmp_path / "fetcher-data" / "sources")
        known = with_an_ended_job(api, {"type": "SQLITE", "databaseName": "shop.db"})
        check_contract(api, known, examples=scaled(6))
        log = process.log()
        assert TOKEN not in log
        [listening] = [line for line in log.splitlines() if "listening" in line]
        assert f"port={api.port}" in listening


@pytest.mark.e2e
@pytest.mark.integration
def test_cluster_keeps_what_its_document_says(
    cluster: Cluster, shop: SqlAddress, tmp_path: Path
) -> None:
    with own_redis(tmp_path) as redis:
        cluster.changes["REDIS_HOST"] = f"127.0.0.1:{redis.address.port}"
        with cluster.manager() as (_, api), cluster.worker():
            check_cluster(api, shop)


def check_cluster(api: Api, shop: SqlAddress) -> None:
    known = with_an_ended_job(
        api,
        {
            "type": "POSTGRESQL",
            "host": shop.host,
            "port": shop.port,
            "databaseName": shop.database,
            "userName": shop.user,
            "password": shop.password or "not asked for",
        },
    )
    check_contract(api, known, examples=scaled(6))
