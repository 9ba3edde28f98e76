"""`fetcher diagnose` beside services that work, that are gone, and whose dependencies are away."""

import json
import signal
import stat
import sys
import tarfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from tests.canaries.fields import secret_settings
from tests.canaries.spelling import MARK as CANARY
from tests.e2e.cluster import KEY, Api, Cluster, embedded, postgres_connection
from tests.e2e.failing_view import ROW
from tests.e2e.test_embedded import make_shop
from tests.servers.addresses import SqlAddress
from tests.servers.processes import free_port, running

pytestmark = pytest.mark.e2e

FILTER = "filter-value-5d10"
PASSWORD = f"{CANARY}-of-a-connection"
PARTS = {
    *("settings", "versions", "probes", "servers", "store", "queues"),
    *("jobs", "failures", "breakers", "disks", "service"),
}


class Diagnosed:
    """An archive, unpacked in memory."""

    def __init__(self, path: Path) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        stem = path.name.removesuffix(".tar.gz")
        with tarfile.open(path, "r:gz") as archive:
            texts = {
                entry.name.removeprefix(f"{stem}/"): archive.extractfile(entry).read().decode()  # type: ignore[union-attr] # all are files
                for entry in archive.getmembers()
            }
        self.text = "".join([*texts, *texts.values()])
        self.files: Mapping[str, Any] = {
            name.removesuffix(".json"): json.loads(text) for name, text in texts.items()
        }

    def lacking(self) -> set[str]:
        parts = self.files["summary"]["parts"]
        assert {name for name in parts if parts[name]["ok"]} == {
            name for name in parts if self.files[name]["ok"]
        }
        return {name for name in parts if not parts[name]["ok"]}


def diagnose(folder: Path, environment: Mapping[str, str], *options: str) -> Diagnosed:
    path = folder / "diagnosis.tar.gz"
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "fetcher", "diagnose", f"--output={path}", "--json", *options]
    with running(command, environment=environment, folder=folder, name="diagnose") as process:
        assert process.wait_exit(deadline_seconds=60) == 0, process.log()
        assert CANARY not in process.log()
    return Diagnosed(path)


def fail_jobs(api: Api, fields: object) -> str:
    """A job that fails while its rows are read, with a filter that holds a canary."""
    filters = {"rows_db": {"numbers": {"t": {"ne": [FILTER]}}}}
    posted = api.post_job(fields, filters, note=FILTER)
    assert posted.status == 202, posted.body
    job = api.wait_for_job(posted.body["jobId"])
    assert job["status"] == "failed", job
    return str(job["id"])


FIELDS = {"rows_db": {"numbers": ["id", "n"]}}


def test_embedded_its_archive_tells_all_and_no_secret(tmp_path: Path, broken: SqlAddress) -> None:
    given = secret_settings()
    environment = given | {
        "APP_ENC_KEY": KEY,
        "DATASOURCE_INCLUDE_VIEWS": "true",
        "MONGO_PARAMETERS": f"tlsCertificateKeyFilePassword={CANARY}-parameter",
        "RABBITMQ_HEALTH_CHECK_URL": f"https://me:{CANARY}-user@broker.test/?key={CANARY}-query",
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={CANARY}-header",
    }
    with embedded(tmp_path, **environment) as (process, open_api):
        make_shop(tmp_path)
        api = Api(open_api.port, given["FETCHER_ACCESS_TOKEN"])
        body = postgres_connection(broken, configName="rows_db", password=PASSWORD)
        assert api.connect(body).status == 201
        job_id = fail_jobs(api, FIELDS)
        url = f"http://127.0.0.1:{api.port}"
        beside = diagnose(tmp_path, environment, f"--url={url}")
        assert beside.lacking() == set()
        assert {actor["name"] for actor in beside.files["service"]["actors"]["actors"]} > {"reaper"}
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=30) == 0
    alone = diagnose(tmp_path, environment | {"SERVER_PORT": str(free_port())})
    assert alone.lacking() == set()
    assert alone.files["service"]["answers"] is False
    for found in (beside, alone):
        assert set(found.files) == PARTS | {"summary"}
        [failure] = found.files["failures"]["failures"]
        assert failure["id"] == job_id
        assert (failure["connection"], failure["stage"] in ("query", "rows")) == ("rows_db", True)
        assert found.files["jobs"]["counts"]["failed"] == 1
        assert found.files["jobs"]["outbox"]["pendingEvents"] == 0
        assert found.files["store"]["schemaVersion"] == found.files["store"]["schemaVersionKnown"]
        assert found.files["probes"]["dependencies"]["record_store"]["status"] == "up"
        assert found.files["probes"]["dependencies"]["object_store"]["status"] == "up"
        assert found.files["disks"]["folders"]["data"]["freeBytes"] > 0
        assert found.files["settings"]["values"]["FETCHER_ACCESS_TOKEN"] == "********"
        for never in (CANARY, KEY, ROW, FILTER):
            assert never not in found.text


def test_a_store_of_another_version_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "fetcher-data"
    data.mkdir()
    with closing(connect(data / "fetcher.db")) as database:
        database.execute("CREATE TABLE job (id)")
        database.execute("PRAGMA user_version = 2")
    before = (data / "fetcher.db").read_bytes()
    found = diagnose(tmp_path, {"SERVER_PORT": str(free_port())})
    assert found.lacking() == {"jobs", "failures", "breakers"}
    assert found.files["store"]["schemaVersion"] == 2
    assert "schema 2" in found.files["jobs"]["failure"]["text"]
    assert (data / "fetcher.db").read_bytes() == before
    assert sorted(path.name for path in data.iterdir()) == ["fetcher.db"]


def test_on_real_services_every_part_answers(
    cluster: Cluster, redis_url: str, broken: SqlAddress
) -> None:
    host, _, port = redis_url.removeprefix("redis://").partition("/")[0].partition(":")
    cluster.changes = {
        "REDIS_HOST": host,
        "REDIS_PORT": port or "6379",
        "DATASOURCE_INCLUDE_VIEWS": "true",
        "CRYPTO_HASH_SECRET_KEY_PLUGIN_CRM": f"{CANARY}-crm",
    }
    with cluster.manager() as (_, api), cluster.worker():
        body = postgres_connection(broken, configName="rows_db", password=PASSWORD)
        assert api.connect(body).status == 201
        job_id = fail_jobs(api, FIELDS)
        environment = cluster.environment()
        found = diagnose(cluster.folder, environment, f"--url=http://127.0.0.1:{api.port}")
    assert found.lacking() == set()
    dependencies = found.files["probes"]["dependencies"]
    assert {name: each["status"] for name, each in dependencies.items()} == dict.fromkeys(
        ("mongodb", "rabbitmq", "s3", "redis"), "up"
    )
    assert set(found.files["servers"]["versions"]) == {"mongodb", "rabbitmq", "redis"}
    assert found.files["servers"]["unknown"] == {}
    assert {queue["purpose"] for queue in found.files["queues"]["queues"]} == {
        "work",
        "dead_letters",
    }
    assert [failure["id"] for failure in found.files["failures"]["failures"]] == [job_id]
    s3_secret = environment["OBJECT_STORAGE_SECRET_KEY"]
    for never in (CANARY, KEY, ROW, FILTER, s3_secret):
        assert never not in found.text


def test_where_everything_is_away_the_archive_says_so(cluster: Cluster) -> None:
    closed = free_port()
    cluster.changes = secret_settings() | {
        "MONGO_URI": f"mongodb://me:{CANARY}-uri@127.0.0.1:{closed}",
        "RABBITMQ_PORT_AMQP": str(closed),
        "OBJECT_STORAGE_ENDPOINT": f"http://127.0.0.1:{closed}",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(closed),
    }
    found = diagnose(cluster.folder, cluster.environment(), f"--url=http://127.0.0.1:{closed}")
    assert found.lacking() == {"queues", "jobs", "failures", "breakers", "service"}
    dependencies = found.files["probes"]["dependencies"]
    assert {each["status"] for each in dependencies.values()} == {"down"}
    assert set(found.files["servers"]["unknown"]) == {"mongodb", "rabbitmq", "redis"}
    assert found.files["versions"]["libraries"]["trio"]
    assert CANARY not in found.text
    assert KEY not in found.text
