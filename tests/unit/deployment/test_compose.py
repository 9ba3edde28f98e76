"""The compose stack: what it starts, with what, and that the product takes it."""

import base64
import hashlib
import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetcher.settings import Role, load_settings
from fetcher.settings.loading import KNOWN_NAMES
from scripts.stack_secrets import write_once
from tests.monitoring import BOARD, RULES
from tests.unit.deployment.files import COMPOSE, KIND, ROOT, compose, documents, secrets

ROLES = ["manager", "worker"]


def service(name: str) -> dict[str, Any]:
    found = compose()["services"][name]
    assert isinstance(found, dict)
    return found


def mounted(name: str) -> dict[str, Path]:
    """Files of ours by their path in the container."""
    pairs = [volume.split(":") for volume in service(name).get("volumes", ())]
    return {pair[1]: (COMPOSE / pair[0]).resolve() for pair in pairs if pair[0].startswith(".")}


@pytest.mark.parametrize("role", ROLES)
def test_the_service_starts_with_what_it_is_given(role: str) -> None:
    given = service(f"fetcher-{role}")["environment"]

    assert set(given) <= KNOWN_NAMES
    assert all(isinstance(value, str) for value in given.values())
    settings = load_settings(given, Role(role))
    assert not settings.queue_is_embedded
    assert settings.object_storage_endpoint == "http://fetcher-seaweedfs-filer:8333"


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_only_what_it_needs(role: str) -> None:
    container = service(f"fetcher-{role}")
    settings = load_settings(container["environment"], Role(role))
    grace = settings.readyz_drain_delay_sec + settings.shutdown_job_wait_sec + 45

    assert container["command"] == [f"--role={role}"]
    assert "entrypoint" not in container
    assert container["read_only"] is True
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert int(container["stop_grace_period"].removesuffix("s")) >= grace
    port = int(settings.listen_address[1:]) if role == "manager" else settings.health_address_port
    assert container["ports"][0].endswith(f":{port}")


def test_hosts_that_the_roles_dial_are_services_with_these_ports() -> None:
    settings = load_settings(service("fetcher-manager")["environment"], Role.MANAGER)
    dialled = {
        settings.mongo_host: settings.mongo_port,
        settings.rabbitmq_host: str(settings.rabbitmq_port_amqp),
        settings.redis_host: str(settings.redis_port),
        "fetcher-seaweedfs-filer": "8333",
    }
    for host, port in dialled.items():
        assert [p for p in service(host)["ports"] if p.split(":")[-1] == port], host


def test_the_brokers_objects_are_the_definitions_and_a_user() -> None:
    assert mounted("fetcher-rabbitmq")["/etc/rabbitmq/definitions.d/20-fetcher.json"] == (
        ROOT / "config" / "rabbitmq" / "definitions.json"
    )
    targets = {entry["source"]: entry["target"] for entry in service("fetcher-rabbitmq")["configs"]}
    assert targets["rabbitmq-users"].startswith("/etc/rabbitmq/definitions.d/")
    conf = compose()["configs"]["rabbitmq-conf"]["content"]
    assert "load_definitions = /etc/rabbitmq/definitions.d" in conf.splitlines()
    users = json.loads(compose()["configs"]["rabbitmq-users"]["content"])
    assert users["users"][0]["name"] == users["permissions"][0]["user"] == "plugin"
    stored = base64.b64decode(users["users"][0]["password_hash"])
    password = secrets()["RABBITMQ_DEFAULT_PASS"]
    assert stored[4:] == hashlib.sha256(stored[:4] + password.encode()).digest()


def test_the_bucket_is_made_by_who_may_use_it() -> None:
    identities = json.loads(compose()["configs"]["seaweedfs-s3"]["content"])["identities"]
    given = service("fetcher-worker")["environment"]

    assert identities[0]["credentials"] == [
        {
            "accessKey": given["OBJECT_STORAGE_ACCESS_KEY_ID"],
            "secretKey": given["OBJECT_STORAGE_SECRET_KEY"],
        }
    ]
    made = service("fetcher-bucket")["entrypoint"][-1]
    assert f"s3.bucket.create -name {given['OBJECT_STORAGE_BUCKET']}" in made
    assert "-s3" in service("fetcher-seaweedfs-filer")["command"]


def test_every_file_service_volume_and_config_that_is_named_is_there() -> None:
    stack = compose()
    for name, container in stack["services"].items():
        assert all(path.is_file() for path in mounted(name).values()), name
        assert set(container.get("depends_on", ())) <= set(stack["services"]), name
        assert {use["source"] for use in container.get("configs", ())} <= set(stack["configs"])
        named = {volume.split(":")[0] for volume in container.get("volumes", ())}
        assert {one for one in named if not one.startswith(".")} <= set(stack["volumes"]), name
        assert set(container["networks"]) <= set(stack["networks"]), name


def test_whom_others_wait_for_has_a_healthcheck() -> None:
    for name, container in compose()["services"].items():
        needed = container.get("depends_on", {})
        for other in needed if isinstance(needed, dict) else ():
            if needed[other]["condition"] == "service_healthy":
                assert "healthcheck" in service(other), (name, other)


def test_ports_are_published_on_loopback_alone_and_once() -> None:
    ports = [port for one in compose()["services"].values() for port in one.get("ports", ())]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    hosts = [port.split(":")[1] for port in ports]
    assert len(hosts) == len(set(hosts))


def test_no_secret_stands_in_a_file_and_images_have_a_version() -> None:
    text = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
    for name in secrets():
        assert f"${{{name}:?run make up}}" in text
    for name, container in compose()["services"].items():
        assert ":" in container["image"], name
        assert not container["image"].endswith(":latest"), name


def test_secrets_are_made_once_and_are_their_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert write_once(file)
    first = file.read_text(encoding="ascii")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not write_once(file)
    assert file.read_text(encoding="ascii") == first
    assert {line.partition("=")[0] for line in first.splitlines()} == set(secrets())


@pytest.mark.parametrize("folder", [COMPOSE, KIND])
def test_their_file_is_ignored_by_git(folder: Path) -> None:
    asked = subprocess.run(
        ["git", "-C", str(ROOT), "check-ignore", "-q", str(folder / ".env")], check=False
    )
    assert asked.returncode == 0


def test_prometheus_asks_every_role_and_judges_by_our_rules(tmp_path: Path) -> None:
    (config,) = documents((COMPOSE / "prometheus.yml").read_text(encoding="utf-8"))
    jobs = {
        job["job_name"]: (entry["names"], entry["port"])
        for job in config["scrape_configs"]
        for entry in job["dns_sd_configs"]
    }
    assert jobs == {
        "fetcher-manager": (["fetcher-manager"], 4006),
        "fetcher-worker": (["fetcher-worker"], 4007),
    }
    assert mounted("fetcher-prometheus")["/etc/prometheus/rules/fetcher.rules.yml"] == RULES
    assert config["rule_files"] == ["/etc/prometheus/rules/*.yml"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool: Debian's prometheus")
def test_promtool_takes_the_configuration() -> None:
    judged = subprocess.run(
        ["promtool", "check", "config", "--syntax-only", str(COMPOSE / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert judged.returncode == 0, judged.stderr


def test_grafana_finds_the_board_and_both_stores() -> None:
    files = mounted("fetcher-grafana")
    (boards,) = documents((COMPOSE / "grafana-dashboards.yml").read_text(encoding="utf-8"))
    (sources,) = documents((COMPOSE / "grafana-datasources.yml").read_text(encoding="utf-8"))
    folder = boards["providers"][0]["options"]["path"]

    assert files[f"{folder}/fetcher.json"] == BOARD
    places = {source["type"]: source["url"] for source in sources["datasources"]}
    assert places == {
        "prometheus": "http://fetcher-prometheus:9090",
        "loki": "http://fetcher-loki:3100",
    }


def test_logs_go_from_the_daemon_to_the_collector_to_the_store() -> None:
    (collector,) = documents((COMPOSE / "vector.yaml").read_text(encoding="utf-8"))
    (store,) = documents((COMPOSE / "loki.yaml").read_text(encoding="utf-8"))
    sink = collector["sinks"]["loki"]

    for role in ROLES:
        logging = service(f"fetcher-{role}")["logging"]
        assert logging["driver"] == "fluentd"
        assert (
            f"{logging['options']['fluentd-address']}:24224" in service("fetcher-vector")["ports"]
        )
    assert collector["sources"]["containers"] == {"type": "fluent", "address": "0.0.0.0:24224"}
    assert sink["inputs"] == ["containers"]
    assert sink["endpoint"] == f"http://fetcher-loki:{store['server']['http_listen_port']}"
