"""The served API document against the service: schemathesis with all checks, and no status that
the document does not name."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Api, Cluster, embedded
from tests.e2e.http_contract.hooks import REPLACED
from tests.scale import IS_NIGHTLY, scale_factor, scaled
from tests.servers.addresses import SqlAddress
from tests.servers.redis_servers import own_redis

TOKEN = "token-of-the-contract"
ROOT = Path(__file__).parents[2]
CONFIG = Path(__file__).with_name("http_contract") / "schemathesis.toml"
WITHOUT_END = "job_events"
"""A stream answers for as long as it is read: tests/unit/api/test_event_stream.py checks it."""


CASES = 6
"""Of each operation, as drawn; the boundaries of its schemas have their own number."""
SCENARIOS = 30
"""Walks along the links of one family, each of up to ``max-steps`` requests."""
DRAWN = "examples,fuzzing"
BOUNDARIES = "coverage"
LINKED = "stateful"
each_part = pytest.mark.parametrize(
    "phases", [DRAWN, BOUNDARIES, LINKED], ids=["drawn", "boundaries", "linked"]
)
FAMILIES = {"connections": "^/v1/management/", "jobs": "^/v1/fetcher"}
"""Walked along apart: where one operation is sure to make something that others take,
schemathesis begins with no other. CI walks along one family on each back end."""
OF_THE_CLUSTER = "(?:/v1/fetcher|/v1/management/connections/.id.)"
"""Paths whose boundaries CI tries on the real back ends, and those of all others on the embedded
one: about a minute each."""


def check_contract(
    api: Api,
    known: Mapping[str, str],
    folder: Path,
    *,
    phases: str,
    uncovered: str,
    walked: str,
) -> None:
    """Run all checks, and fail with whatever any of them has found.

    ``uncovered``: the paths whose boundaries are left to the other back end, or to the night: there
    are thousands. ``walked``: the family of links that is followed here.
    """
    document = api.call("GET", "/openapi.json").body
    config = folder / "schemathesis.toml"
    if phases == LINKED:
        config.write_text(CONFIG.read_text())
        for family in FAMILIES if IS_NIGHTLY else [walked]:
            paths = FAMILIES[family]
            output = schemathesis_on(
                api,
                known,
                *("--config-file", str(config)),
                *("--phases", phases, "--max-examples", str(scaled(SCENARIOS))),
                *("--include-path-regex", paths),
            )
            links = links_from(document, paths)
            followed = _counted(rf"API Links: +([0-9]+) covered / {links} selected", output)
            print(f"{family}: {followed} of {links} links followed")
            # which ones is chance; tests/unit/api/test_links.py follows every one of them
            assert followed >= links // 3, output
        return
    left_out = ["[[operations]]", f"include-path-regex = '{uncovered}'"]
    left_out += ["phases.coverage.enabled = false", ""]
    config.write_text(CONFIG.read_text() + ("" if IS_NIGHTLY else "\n".join(left_out)))
    output = schemathesis_on(
        api,
        known,
        *("--config-file", str(config)),
        *("--phases", phases, "--max-examples", str(scaled(CASES))),
    )
    if phases == DRAWN:
        # but for the stream, and mostly the document itself, which schemathesis has read already
        operations = sum(len(methods) for methods in document["paths"].values())
        assert _counted(r"Tested: ([0-9]+)", output) >= operations - 2


def schemathesis_on(api: Api, known: Mapping[str, str], *arguments: str) -> str:
    """What it says, where it has found nothing. The first two arguments are the command's own."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli", *arguments[:2]),
        *("run", f"http://127.0.0.1:{api.port}/openapi.json", *arguments[2:]),
        *("--checks", "all", "--exclude-checks", ",".join(REPLACED)),
        *("--exclude-operation-id", WITHOUT_END, "--continue-on-failure"),
        *("--request-timeout", "20", "--no-color"),
        *(["--header", f"Authorization: Bearer {api.token}"] if api.token else []),
        # a nightly run looks elsewhere every time
        *([] if IS_NIGHTLY else ["--seed", "20260314"]),
    ]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.e2e.http_contract.hooks", **known},
        capture_output=True,
        text=True,
        timeout=3600 * scale_factor() if IS_NIGHTLY else 280,
        check=False,
    )
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-2_000:]
    return ended.stdout


def links_from(document: Mapping[str, Any], paths: str) -> int:
    return sum(
        len(answer.get("links", ()))
        for path, methods in document["paths"].items()
        if re.match(paths, path)
        for told in methods.values()
        for answer in told["responses"].values()
    )


def _counted(pattern: str, output: str) -> int:
    found = re.search(pattern, output)
    assert found is not None, output
    return int(found[1])


def make_orders(folder: Path) -> None:
    """What the document's example asks for."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, status TEXT)")
        shop.executemany(
            "INSERT INTO orders VALUES (?, ?, 'paid')", [(n, 1.5 * n) for n in range(50)]
        )


def with_an_ended_job(api: Api, connection: dict[str, object]) -> dict[str, str]:
    """A connection that the document's examples name, and a job with a result; their ids. The spare
    ones are there to be changed and deleted."""
    known = {}
    for spare, name in (("", "sales_db"), ("SPARE_", "spare_db")):
        made = api.connect({"configName": name, **connection})
        assert made.status == 201
        asked = api.post_job({name: {"orders": ["id", "total"]}})
        job = api.wait_for_job(asked.body["jobId"])
        assert job["status"] == "completed", job
        known[f"FETCHER_CONTRACT_{spare}CONNECTION_ID"] = made.body["id"]
        known[f"FETCHER_CONTRACT_{spare}JOB_ID"] = job["id"]
    return known


@pytest.mark.e2e
@each_part
def test_embedded_service_keeps_what_its_document_says(tmp_path: Path, phases: str) -> None:
    with embedded(tmp_path, FETCHER_ACCESS_TOKEN=TOKEN) as (process, open_api):
        api = Api(open_api.port, TOKEN)
        make_orders(tmp_path / "fetcher-data" / "sources")
        known = with_an_ended_job(api, {"type": "SQLITE", "databaseName": "shop.db"})
        check_contract(
            api,
            known,
            tmp_path,
            phases=phases,
            uncovered=f"^{OF_THE_CLUSTER}",
            walked="connections",
        )
        log = process.log()
        assert TOKEN not in log
        [listening] = [line for line in log.splitlines() if "listening" in line]
        assert json.loads(listening)["port"] == api.port


@pytest.mark.e2e
@pytest.mark.integration
@each_part
def test_cluster_keeps_what_its_document_says(
    cluster: Cluster, shop: SqlAddress, tmp_path: Path, phases: str
) -> None:
    source = {
        "type": "POSTGRESQL",
        "host": shop.host,
        "port": shop.port,
        "databaseName": shop.database,
        "userName": shop.user,
        "password": shop.password or "not asked for",
    }
    with own_redis(tmp_path) as redis:
        cluster.changes["REDIS_HOST"] = f"127.0.0.1:{redis.address.port}"
        # the document has the types of all deployments
        cluster.changes["DATASOURCE_SQLITE_DIR"] = str(tmp_path)
        # on a busy machine no attempt is to be lost for want of its turn
        cluster.changes |= {"JOB_LEASE_SEC": "60", "JOB_LEASE_RENEW_SEC": "10"}
        with cluster.manager() as (_, api), cluster.worker():
            known = with_an_ended_job(api, source)
            # to try a request takes the same body as to make it
            uncovered = f"^/v1/fetcher/validate|^(?!{OF_THE_CLUSTER})"
            check_contract(api, known, tmp_path, phases=phases, uncovered=uncovered, walked="jobs")
