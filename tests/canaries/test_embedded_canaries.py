"""One process with a canary in every secret, in which everything fails: nothing of it leaves."""

import json
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.canaries.fields import MASTER_KEY, a_pem, a_token, secret_settings
from tests.canaries.places import Places
from tests.canaries.quoting import Quoting, quoting
from tests.canaries.spelling import canary, hits
from tests.e2e.cluster import PRODUCT, Answer, Api, embedded
from tests.e2e.test_embedded import make_shop
from tests.servers.addresses import SqlAddress
from tests.servers.otlp_double import OtlpDouble, otlp_double
from tests.servers.processes import FetcherProcess

pytestmark = pytest.mark.e2e

PASSWORD = canary("connection")
FILTER_MARK = "zq7filter"
ROW_MARK = "row-value-91c2"
"""What :mod:`tests.e2e.failing_view` has its server quote."""
LOOKS = (
    *("/health", "/readyz", "/metrics", "/version", "/openapi.json", "/v1/fetcher/no-job"),
    *("/v1/operations/actors", "/v1/operations/audit", "/v1/operations/breakers"),
    *("/v1/operations/dependencies", "/v1/operations/jobs", "/v1/operations/queues"),
    *("/v1/operations/dead-letters", "/v1/management/connections", "/v1/fetcher"),
)
DATABASE = {"databaseName": "d", "userName": "reader", "host": "127.0.0.1"}


@pytest.fixture
def servers() -> Iterator[Quoting]:
    texts = dict.fromkeys(("postgresql", "mysql", "mongodb"), f"you said {PASSWORD}")
    with quoting(texts) as opened:
        yield opened


@contextmanager
def silence() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield int(listener.getsockname()[1])


class Failing:
    """A process under test; whatever it answers is kept."""

    def __init__(self, api: Api, places: Places) -> None:
        self.api, self.places = api, places

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        told = {"Accept": "application/json", **(headers or {})}
        return self.places.answer(self.api.call(method, path, body, raw=raw, headers=told))

    def connect(self, name: str, body: Mapping[str, object]) -> None:
        made = self.call(
            "POST",
            "/v1/management/connections",
            {"configName": name, "password": PASSWORD, **DATABASE, **body},
        )
        assert made.status == 201, made.body

    def job(
        self,
        source: str,
        table: str,
        field: str,
        where: str,
        *,
        limits: Mapping[str, int] | None = None,
        **metadata: object,
    ) -> str:
        body = {
            "dataRequest": {
                **({"options": {"limits": limits}} if limits else {}),
                "mappedFields": {source: {table: [field]}},
                "filters": {source: {table: {where: {"ne": [f"{FILTER_MARK}-1"]}}}},
            },
            "metadata": {"source": PRODUCT, **metadata},
        }
        posted = self.call("POST", "/v1/fetcher", body)
        assert posted.status == 202, posted.body
        return str(posted.body["jobId"])

    def ended(self, job_id: str) -> Any:
        self.api.wait_for_job(job_id)
        return self.call("GET", f"/v1/fetcher/{job_id}").body


def fail_all_sources(failing: Failing, servers: Quoting, broken: SqlAddress) -> None:
    """Refused, unknown, in words that quote the password, without TLS, in the middle."""
    postgres: dict[str, object] = {"type": "POSTGRESQL"}
    there = postgres | {"host": broken.host, "port": broken.port, "databaseName": broken.database}
    pair = {"cert": a_pem("CERTIFICATE", "public"), "key": a_pem("PRIVATE KEY", canary("key"))}
    made: dict[str, tuple[Mapping[str, object], str]] = {
        "dns_db": (postgres | {"host": "no-such-host.invalid", "port": 5432}, "dns"),
        "refused_db": (postgres | {"port": 1}, "tcp"),
        "postgresql_db": (postgres | {"port": servers.ports["postgresql"]}, "auth"),
        "mysql_db": ({"type": "MYSQL", "port": servers.ports["mysql"]}, "auth"),
        "mongodb_db": ({"type": "MONGODB", "port": servers.ports["mongodb"]}, "auth"),
        "tls_db": (there | {"ssl": {"mode": "require", **pair}}, "tls"),
        "rows_db": (there | {"userName": broken.user}, "rows"),
    }
    for name, (body, _) in made.items():
        failing.connect(name, body)
    jobs = {name: failing.job(name, "numbers", "n", "t") for name in made}
    stages = {name: failing.ended(job)["error"]["stage"] for name, job in jobs.items()}
    assert stages.pop("rows_db") in ("query", "rows")
    assert stages == {name: stage for name, (_, stage) in made.items() if stage != "rows"}
    assert set(servers.met) == {"postgresql", "mysql", "mongodb"}


def send_what_is_invalid(failing: Failing) -> None:
    """A secret in a field where it does not belong, and beside what is not valid."""
    body = {"configName": "x_db", "type": "POSTGRESQL", "port": 5432, **DATABASE}
    secret = canary("misplaced")
    root = "/v1/management/connections"
    for name in ("configName", "type", "host", "port", "databaseName", "userName", "ssl", "schema"):
        failing.call("POST", root, body | {"password": PASSWORD, name: [secret]})
    for password in ([secret], {"a": secret}, secret * 1000, f"{secret}\0", None):
        failing.call("POST", root, body | {"password": password})
    for tls in ({"mode": secret}, {"mode": "verify-full", "ca": secret, "key": secret}, secret):
        failing.call("POST", root, body | {"password": PASSWORD, "ssl": tls})
    for raw in (f'{{"password": "{secret}', f'{{"password": "{secret}", "password": 1}}', "["):
        assert failing.call("POST", root, raw=raw.encode()).status == 400
    for headers in (
        {"X-Product-Name": "p" * 300, "Authorization": f"Bearer {canary('other', is_ascii=True)}"},
        {"Authorization": f"Bearer {a_token()}"},
        {"Authorization": f"Basic {canary('basic', is_ascii=True)}"},
        {"Idempotency-Key": "k" * 300, "X-Api-Key": canary("api", is_ascii=True)},
        {"Cookie": f"session={canary('cookie', is_ascii=True)}"},
    ):
        failing.call("POST", "/v1/fetcher", {}, headers=headers)
    request: dict[str, Any] = {"mappedFields": {"rows_db": {"numbers": ["n"]}}}
    for filters in (
        {"rows_db": {"numbers": {"n": {"between": [f"{FILTER_MARK}-2"]}}}},
        FILTER_MARK,
    ):
        refused = {"dataRequest": request | {"filters": filters}, "metadata": {"source": PRODUCT}}
        assert failing.call("POST", "/v1/fetcher", refused).status == 400


def test_one_process_in_which_everything_fails_tells_no_secret(
    tmp_path: Path, broken: SqlAddress, servers: Quoting
) -> None:
    with psycopg.connect(broken.conninfo, autocommit=True) as database:
        database.execute("CREATE VIEW slow AS SELECT id, t, pg_sleep(60)::text AS s FROM texts")
    places = Places()
    given = secret_settings()
    with otlp_double() as collector, silence() as silent_port:
        with embedded(
            tmp_path, module="tests.canaries.crashing", **given, **settings_of(collector)
        ) as (process, plain):
            make_shop(tmp_path)
            failing = Failing(Api(plain.port, given["FETCHER_ACCESS_TOKEN"]), places)
            failing.connect("silent_db", {"type": "POSTGRESQL", "port": silent_port})
            silent = failing.job("silent_db", "t", "x", "x")
            fail_all_sources(failing, servers, broken)
            send_what_is_invalid(failing)
            failing.connect("shop", {"type": "SQLITE", "databaseName": "shop.db", "host": ""})
            assert (
                failing.ended(failing.job("shop", "items", "id", "name"))["status"] == "completed"
            )
            too_much = failing.job("shop", "items", "id", "name", limits={"maxResultBytes": 10})
            assert failing.ended(too_much)["error"]["code"] == "limit_exceeded"
            crashing = failing.ended(failing.job("shop", "items", "id", "name", crashes=True))
            assert crashing["status"] == "completed", "by its second attempt"
            for path in LOOKS:
                look_at(failing, path)
            assert failing.ended(silent)["status"] == "failed"
            fail_the_store(failing, tmp_path / "fetcher-data" / "objects")
            failing.job("rows_db", "slow", "s", "t")
            places.list_of_processes(process)
            end(process)
        places.log_of(process)
        places.traces(collector)
    log = process.log()
    assert log.count('"msg":"actor_crashed"') == 2
    assert "Crash: ('***'" in log, "the process ended by one"
    assert len(collector.bodies) > 0
    data = tmp_path / "fetcher-data"
    assert (data / "events.jsonl").stat().st_size > 0
    places.folder(data, without=frozenset({"sources"}))
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []
    # what a job asks for is in its record, and a caller's refusal may name what it sent
    told = {
        n: c for n, c in places.found.items() if not n.startswith(("file fetcher.db", "answer"))
    }
    assert hits(told, FILTER_MARK) == []
    assert hits(told | {n: c for n, c in places.found.items() if "answer" in n}, ROW_MARK) == []


def fail_the_store(failing: Failing, objects: Path) -> None:
    """For as long as the process lives."""
    objects.rename(objects.with_name("moved"))
    objects.write_bytes(b"")
    stored = failing.ended(failing.job("shop", "items", "name", "name"))
    assert stored["error"]["code"].startswith("storage_")


def settings_of(collector: OtlpDouble) -> dict[str, str]:
    return {
        "LOG_LEVEL": "debug",
        "JOB_PREFLIGHT_TEST": "false",
        "DATASOURCE_INCLUDE_VIEWS": "true",
        "SHUTDOWN_JOB_WAIT_SEC": "1",
        "ENABLE_TELEMETRY": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "JOB_LEASE_SEC": "4",
        "JOB_LEASE_RENEW_SEC": "1",
        "JOB_LEASE_MARGIN_SEC": "1",
        "JOB_REAP_SEC": "0.5",
        "LICENSE_KEY": canary("license"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def look_at(failing: Failing, path: str) -> None:
    if path == "/metrics":
        failing.places.add("metrics", failing.api.text(path).encode())
    else:
        answer = failing.call("GET", path)
        assert answer.status in (200, 400, 404, 500, 503), (path, answer.body)


def end(process: FetcherProcess) -> None:
    process.send(signal.SIGTERM)
    assert process.wait_exit(deadline_seconds=40) != 0
    json.loads(process.output_path.read_text().splitlines()[0])
