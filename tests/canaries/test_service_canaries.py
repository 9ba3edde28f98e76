"""Services that refuse us in words that quote our own secret: nobody is told it."""

import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from traceback import TracebackException

import pytest

from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE
from fetcher.settings import Role, SettingsRefused, load_settings
from tests.canaries.fields import MASTER_KEY, a_token, secret_settings
from tests.canaries.places import Places
from tests.canaries.quoting import Quoting, quoting
from tests.canaries.spelling import MARK, canary, hits
from tests.e2e import broker
from tests.e2e.cluster import SOURCE, Api, Cluster
from tests.e2e.tenancy import ENVIRONMENT_NAME, token_of
from tests.scale import scaled
from tests.servers.amqp_cleaning import fixed_names
from tests.servers.processes import FetcherProcess, fetcher_process, free_port, running
from tests.servers.redis_servers import redis_address_of

pytestmark = pytest.mark.e2e

START_SECONDS = 40.0
LOOKS = (
    *("/health", "/readyz", "/v1/fetcher", "/v1/management/connections"),
    *("/v1/operations/dependencies", "/v1/operations/queues", "/v1/operations/dead-letters"),
)
COMMANDS: dict[tuple[str, ...], bool] = {
    ("diagnose", "--output=d.tar.gz"): True,
    ("check-config",): True,
    ("topology", "verify"): False,
    ("check-config", "--json"): True,
    ("--help",): True,
    ("dlq", "list"): False,
    ("open-result", "no/such.json"): False,
    ("open-file", "no-such-file", "--hmac=x", "--size=1"): False,
    ("keys", "rotate", "--dry-run"): False,
    ("audit", "list"): False,
    ("jobs", "list"): False,
    ("connections", "show", "x"): False,
    ("run", "--no-such-option"): False,
    ("keys", "derive", "--no-such"): False,
}
"""And whether they succeed; CI runs the first alone."""


@pytest.fixture
def servers() -> Iterator[Quoting]:
    """Each quotes the environment's secrets, but for those that not every process here is given; a
    short text is that of the service alone."""
    given = secret_settings()
    left_out = ("FETCHER_ACCESS_TOKEN", "MONGO_PARAMETERS", "MULTI_TENANT_REDIS_PASSWORD")
    quoted = [each for name, each in given.items() if MARK in each and name not in left_out]
    everything = " ".join([*quoted, MASTER_KEY])
    texts = {
        "redis": everything,
        "amqp": f"{given['RABBITMQ_DEFAULT_PASS']} {MASTER_KEY}",
        "mongodb": f"{everything} {canary('uri', is_ascii=True)}",
        "http": everything,
    }
    with quoting(texts) as opened:
        yield opened


def environment(servers: Quoting, **changes: str) -> dict[str, str]:
    """Every part is a service, and each of them quotes."""
    ports = servers.ports
    http = f"http://127.0.0.1:{ports['http']}"
    return {
        **secret_settings(),
        "ALLOW_INSECURE_TLS": "true",
        "MONGO_URI": f"mongodb://reader:zq7canary-uri@127.0.0.1:{ports['mongodb']}/?authSource=admin",
        "MONGO_PARAMETERS": "",
        "MONGO_NAME": "fetcher_canaries",
        "RABBITMQ_HOST": "127.0.0.1",
        "RABBITMQ_PORT_AMQP": str(ports["amqp"]),
        "RABBITMQ_DEFAULT_USER": "fetcher",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(ports["redis"]),
        "OBJECT_STORAGE_ENDPOINT": http,
        "OBJECT_STORAGE_BUCKET": "results",
        "OBJECT_STORAGE_USE_PATH_STYLE": "true",
        "ENABLE_TELEMETRY": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": http,
        "STREAMING_ENABLED": "true",
        "STREAMING_CLOUDEVENTS_SOURCE": SOURCE,
        "RABBITMQ_JOB_EVENTS_EXCHANGE": "fetcher.job.events",
        "LOG_LEVEL": "debug",
        "READYZ_DRAIN_DELAY_SEC": "0.2",
        "SHUTDOWN_JOB_WAIT_SEC": "1",
        **changes,
    }


def run_until_refused(role: str, folder: Path, given: Mapping[str, str], places: Places) -> None:
    port = free_port()
    own = {"SERVER_ADDRESS": f"127.0.0.1:{port}", "HEALTH_PORT": str(port)}
    with fetcher_process(
        [f"--role={role}"], environment={**given, **own}, folder=folder
    ) as process:
        process.wait_until(
            lambda p: "startup_self_probe_failed" in p.log() or "drain_started" in p.log(),
            deadline_seconds=START_SECONDS,
        )
        api = Api(port, given["FETCHER_ACCESS_TOKEN"])
        for path in LOOKS if role == "manager" else LOOKS[:2]:
            headers = {"Accept": "application/json"}
            assert places.answer(api.call("GET", path, headers=headers)).status in (
                200,
                500,
                503,
            ), path
        places.add("metrics", api.text("/metrics").encode())
        places.list_of_processes(process)
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=40) == 0
    places.log_of(process)


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_services_that_quote_us_have_no_secret_told(
    role: str, tmp_path: Path, servers: Quoting
) -> None:
    places = Places()
    given = environment(servers)
    run_until_refused(role, tmp_path, given, places)
    assert {"amqp", "mongodb", "http"} <= set(servers.met)
    assert role == "worker" or "redis" in servers.met
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []


def test_the_platforms_services_that_quote_us_have_no_secret_told(
    tmp_path: Path, servers: Quoting, redis_url: str
) -> None:
    """The Tenant Manager, and the authorization service, which quotes the token."""
    places = Places()
    http = f"http://127.0.0.1:{servers.ports['http']}"
    redis = redis_address_of(redis_url)
    given = environment(
        servers,
        MULTI_TENANT_ENABLED="true",
        MULTI_TENANT_URL=http,
        MULTI_TENANT_ALLOW_INSECURE_HTTP="true",
        MULTI_TENANT_REDIS_HOST=redis.host,
        MULTI_TENANT_REDIS_PORT=str(redis.port),
        MULTI_TENANT_REDIS_PASSWORD=redis.password,
        MULTI_TENANT_RECONCILE_INTERVAL_SEC="1",
        ENVIRONMENT_NAME=ENVIRONMENT_NAME,
        FETCHER_ACCESS_TOKEN="",
        PLUGIN_AUTH_ENABLED="true",
        PLUGIN_AUTH_ADDRESS=http,
        PLUGIN_AUTH_JWKS_URL="",
        MONGO_URI="",
    )
    port = free_port()
    own = {"SERVER_ADDRESS": f"127.0.0.1:{port}"}
    with fetcher_process(
        ["--role=manager"], environment={**given, **own}, folder=tmp_path
    ) as process:
        process.wait_until_answers(
            f"http://127.0.0.1:{port}/health", deadline_seconds=START_SECONDS
        )
        for token in (a_token(), token_of("a-tenant"), canary("no-token", is_ascii=True)):
            answer = Api(port, token).call(
                "GET", "/v1/fetcher", headers={"Accept": "application/json"}
            )
            assert answer.status in (401, 403), answer.body
        process.wait_until(lambda p: "tenant" in p.log(), deadline_seconds=START_SECONDS)
        places.list_of_processes(process)
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=40) == 0
    places.log_of(process)
    assert {"http", "redis"} <= set(servers.met)
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []


def test_commands_that_fail_tell_no_secret(tmp_path: Path, servers: Quoting) -> None:
    places = Places()
    port = free_port()
    given = environment(servers, SERVER_ADDRESS=f"127.0.0.1:{port}")
    (tmp_path / ".env").write_text(
        f"LICENSE_KEY={canary('license')}\nFETCHER_TOKEN={canary('token', is_ascii=True)}\n",
        encoding="utf-8",
    )
    chosen = dict(list(COMMANDS.items())[: scaled(1)])
    codes = {}
    for number, words in enumerate(chosen):
        command = [sys.executable, "-m", "fetcher", *words]
        with running(
            command, environment=given, folder=tmp_path, name=f"command-{number}"
        ) as process:
            codes[words] = process.wait_exit(deadline_seconds=90)
        places.log_of(process)
    assert {words: code == 0 for words, code in codes.items()} == chosen
    places.archive(tmp_path / "d.tar.gz")
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []


def test_settings_that_are_refused_are_told_without_their_values() -> None:
    places = Places()
    for changes in wrong_settings():
        with pytest.raises(SettingsRefused) as refused:
            load_settings({**secret_settings(), **changes}, Role.ALL)
        told = TracebackException.from_exception(refused.value)
        places.texts({"refusal": str(refused.value), "traceback": "".join(told.format())})
        places.texts({"problems": repr(refused.value.problems), "repr": repr(refused.value)})
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []


def test_settings_show_no_secret_of_theirs() -> None:
    settings = load_settings(secret_settings(), Role.ALL)
    places = Places()
    places.texts(
        {"repr": repr(settings), "str": str(settings), "groups": repr(settings.datasource_groups)}
    )
    assert hits(places.found) == []
    assert hits(places.found, MASTER_KEY) == []


def wrong_settings() -> Iterator[dict[str, str]]:
    """A secret where a number, an address or a switch belongs, and one of the wrong form."""
    secret = canary("misplaced")
    yield {"APP_ENC_KEY": secret}
    yield {"APP_ENC_KEY_PREVIOUS": f"1={secret}", "SERVER_PORT": secret, "REDIS_DB": secret}
    yield {"MONGO_URI": f"http://me:{secret}@host", "MULTI_TENANT_URL": secret}
    yield {"FETCHER_ACCESS_TOKEN": secret, "LOG_LEVEL": secret, "ENABLE_TELEMETRY": secret}


def test_a_dead_letter_has_no_secret_of_ours(cluster: Cluster) -> None:
    """Messages that nobody signed, with a token in them: what is added to them tells nothing."""
    cluster.changes = {"LOG_LEVEL": "debug", "FETCHER_ACCESS_TOKEN": canary("T", is_ascii=True)}
    with fixed_names(cluster.amqp_url):
        broker.declare_dead_letters(cluster.amqp_url)
        check_dead_letters(cluster)


def check_dead_letters(cluster: Cluster) -> None:
    sent = [b"{", b"\xff" * 40, b'{"jobId": 1}', b"[" * 900]
    places = Places()
    with cluster.worker() as (process, _):
        for body in sent:
            broker.publish(cluster.amqp_url, cluster.work_queue, body, {"X-Signature": "x"})
        process.wait_until(
            lambda p: p.log().count("delivery_rejected") >= len(sent),
            deadline_seconds=START_SECONDS,
        )
        places.list_of_processes(process)
        stop(process)
    places.log_of(process)
    found = [
        each for each in broker.read_all(cluster.amqp_url, DEAD_LETTER_QUEUE) if each.body in sent
    ]
    assert len(found) >= 1
    places.messages(found)
    assert hits(places.found) == []


def stop(process: FetcherProcess) -> None:
    process.send(signal.SIGTERM)
    assert process.wait_exit(deadline_seconds=40) == 0
