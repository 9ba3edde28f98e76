"""The local cluster: its servers are those that the chart's values dial."""

import re
import subprocess
from typing import Any

import pytest

from tests.unit.deployment.files import KIND, ROOT, documents, secrets

SCRIPT = (KIND / "up.sh").read_text(encoding="utf-8")
OBJECTS = documents((KIND / "dependencies.yaml").read_text(encoding="utf-8"))


def by_kind(kind: str) -> dict[str, Any]:
    return {made["metadata"]["name"]: made for made in OBJECTS if made["kind"] == kind}


@pytest.mark.parametrize("name", ["up.sh", "down.sh"])
def test_the_scripts_parse(name: str) -> None:
    judged = subprocess.run(["bash", "-n", str(KIND / name)], check=False, timeout=30)
    assert judged.returncode == 0
    assert (KIND / name).stat().st_mode & 0o111


def test_every_server_is_reached_at_its_ports() -> None:
    (values,) = documents((KIND / "values.yaml").read_text(encoding="utf-8"))
    dialled = values["common"]["configmap"] | values["manager"]["configmap"]
    wanted = {
        dialled["MONGO_HOST"]: 27017,
        dialled["RABBITMQ_HOST"]: int(dialled["RABBITMQ_PORT_AMQP"]),
        dialled["REDIS_HOST"]: int(dialled["REDIS_PORT"]),
        "seaweedfs": int(dialled["OBJECT_STORAGE_ENDPOINT"].rpartition(":")[2]),
    }
    services, deployments = by_kind("Service"), by_kind("Deployment")
    assert set(services) == set(deployments) == set(wanted)
    for name, port in wanted.items():
        ports = {entry["port"] for entry in services[name]["spec"]["ports"]}
        template = deployments[name]["spec"]["template"]
        (container,) = template["spec"]["containers"]
        assert port in ports, name
        assert ports <= {entry["containerPort"] for entry in container["ports"]}, name
        assert services[name]["spec"]["selector"] == template["metadata"]["labels"]
        assert template["spec"]["enableServiceLinks"] is False


def test_the_version_of_keda_is_the_one_that_is_promised() -> None:
    assert "/releases/download/v2.16.0/keda-2.16.0.yaml" in SCRIPT
    assert "http://plugin:%s@rabbitmq.fetcher.svc:15672/" in SCRIPT
    assert 15672 in {p["port"] for p in by_kind("Service")["rabbitmq"]["spec"]["ports"]}


def test_what_is_taken_from_secrets_is_put_there() -> None:
    text = (KIND / "dependencies.yaml").read_text(encoding="utf-8")
    taken = set(re.findall(r"secretKeyRef: \{name: fetcher, key: (\w+)\}", text))
    (names,) = re.findall(r"^names='(.*)'$", SCRIPT, re.MULTILINE)

    assert taken <= set(names.split("|")) <= set(secrets())
    others = set(re.findall(r"\{name: dependencies, key: (\w+)\}", text))
    others |= set(re.findall(r"items: \[\{key: (rabbitmq-users\.json|s3\.json)", text))
    assert others == set(re.findall(r"--from-file=([\w.-]+)=<\(printf '[%{]", SCRIPT)) - {"host"}


def test_the_brokers_definitions_are_the_products() -> None:
    assert "--from-file=config/rabbitmq/definitions.json" in SCRIPT
    assert (ROOT / "config" / "rabbitmq" / "definitions.json").is_file()


def test_no_secret_stands_on_a_command_line() -> None:
    assert "--from-literal" not in SCRIPT
