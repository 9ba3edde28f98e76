"""The chart, with its own values and with others, makes the objects that it should."""

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from jsonschema import (  # type: ignore[import-untyped] # it has no stubs
    Draft7Validator,
    Draft202012Validator,
)

from fetcher.settings import Role, load_settings
from fetcher.settings.loading import KNOWN_NAMES, SECRET_NAMES
from tests.unit.deployment.files import CHART, KIND, documents, secrets
from tests.unit.deployment.go_templates import Renderer
from tests.unit.deployment.object_schemas import SCHEMAS

Object = dict[str, Any]

DEFAULTS = documents((CHART / "values.yaml").read_text(encoding="utf-8"))[0]
VALUES_SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
SECRET_IN_CLUSTER = {
    **{name: secrets()[name] for name in ("APP_ENC_KEY", "MONGO_PASSWORD", "REDIS_PASSWORD")},
    **{name: secrets()[name] for name in ("RABBITMQ_DEFAULT_PASS", "FETCHER_ACCESS_TOKEN")},
    "OBJECT_STORAGE_ACCESS_KEY_ID": "fetcher",
    "OBJECT_STORAGE_SECRET_KEY": secrets()["OBJECT_STORAGE_SECRET_KEY"],
}

EVERYTHING: Object = {
    "common": {
        "configmap": {"RABBITMQ_FETCHER_WORK_QUEUE": "jobs", "READYZ_DRAIN_DELAY_SEC": "20"}
    },
    "manager": {
        "image": {"repository": "images.example/fetcher", "tag": "2.0.1"},
        "imagePullSecrets": [{"name": "pull"}],
        "existingSecretName": "manager-only",
        "extraEnvVars": [{"name": "LOG_LEVEL", "value": "debug"}],
        "service": {"type": "LoadBalancer", "port": 80},
        "serviceAccount": {"name": "mine", "annotations": {"example.org/role": "r"}},
        "podAnnotations": {"example.org/a": "b"},
        "pdb": {"maxUnavailable": "25%"},
        "autoscaling": {"enabled": True},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
    },
    "worker": {
        "configmap": {"RABBITMQ_NUMBERS_OF_WORKERS": "8", "SHUTDOWN_JOB_WAIT_SEC": "60"},
        "serviceAccount": {"create": False, "name": "theirs"},
        "pdb": {"enabled": True},
    },
    "keda": {"enabled": True, "maxReplicaCount": 40, "vhostName": "jobs"},
    "networkPolicy": {
        "apiFrom": [{"namespaceSelector": {"matchLabels": {"team": "reports"}}}],
        "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
        "egress": [{"ports": [{"port": 5432, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
TENANTS: Object = {
    "common": {
        "certificates": {"existingSecretName": "servers"},
        "configmap": {
            **dict.fromkeys(("MONGO_HOST", "MONGO_PORT", "MONGO_NAME", "MONGO_USER")),
            **dict.fromkeys(("MONGO_PARAMETERS", "RABBITMQ_URI", "RABBITMQ_HOST")),
            **dict.fromkeys(("RABBITMQ_PORT_AMQP", "RABBITMQ_DEFAULT_USER")),
            "MULTI_TENANT_ENABLED": "true",
            "MULTI_TENANT_URL": "https://tenants.example",
            "MULTI_TENANT_REDIS_HOST": "redis",
            "MULTI_TENANT_REDIS_TLS": "true",
            "PLUGIN_AUTH_ENABLED": "true",
            "PLUGIN_AUTH_ADDRESS": "https://auth.example",
        },
    },
}
SECRET_WITH_TENANTS = {
    name: text
    for name, text in SECRET_IN_CLUSTER.items()
    if name in ("APP_ENC_KEY", "OBJECT_STORAGE_ACCESS_KEY_ID", "OBJECT_STORAGE_SECRET_KEY")
} | {"MULTI_TENANT_SERVICE_API_KEY": "key", "MULTI_TENANT_REDIS_PASSWORD": "password"}

NOTHING: Object = {
    "manager": {"pdb": {"enabled": False}, "serviceAccount": {"create": False, "name": "other"}},
    "networkPolicy": {"enabled": False},
}
IN_KIND = documents((KIND / "values.yaml").read_text(encoding="utf-8"))[0]


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Object:
    """As Helm does: maps are merged, null takes away, everything else is replaced."""
    result = copy.deepcopy(dict(below))
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(result.get(name), Mapping):
            result[name] = merged(result[name], value)
        else:
            result[name] = copy.deepcopy(value)
    return result


def objects(above: Mapping[str, Any], release: str = "fetcher") -> dict[tuple[str, str], Object]:
    """By kind and name; every one is judged by its schema."""
    return _objects(json.dumps(merged(DEFAULTS, above)), release)


@cache
def _objects(given: str, release: str) -> dict[tuple[str, str], Object]:
    values = json.loads(given)
    Draft7Validator(VALUES_SCHEMA).validate(values)
    chart = documents((CHART / "Chart.yaml").read_text(encoding="utf-8"))[0]
    renderer = Renderer(values, chart, release)
    renderer.define((CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8"))
    found: dict[tuple[str, str], Object] = {}
    for path in sorted((CHART / "templates").glob("*.yaml")):
        for made in documents(renderer.render(path.read_text(encoding="utf-8"))):
            schema = SCHEMAS[made["apiVersion"], made["kind"]]
            Draft202012Validator(schema).validate(made)
            key = (made["kind"], made["metadata"]["name"])
            assert key not in found
            found[key] = made
    return found


def pod(found: Mapping[tuple[str, str], Object], role: str) -> Object:
    spec = found["Deployment", f"fetcher-{role}"]["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def environment(
    found: Mapping[tuple[str, str], Object],
    role: str,
    secret: Mapping[str, str] = SECRET_IN_CLUSTER,
) -> dict[str, str]:
    """What the container of a role sees, the secret included."""
    (container,) = pod(found, role)["containers"]
    seen: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            seen |= found["ConfigMap", source["configMapRef"]["name"]]["data"]
        else:
            seen |= secret
    return seen | {entry["name"]: entry["value"] for entry in container["env"]}


def test_what_the_defaults_make() -> None:
    assert set(objects({})) == {
        ("ConfigMap", "fetcher-common"),
        ("ConfigMap", "fetcher-manager"),
        ("ConfigMap", "fetcher-worker"),
        ("Deployment", "fetcher-manager"),
        ("Deployment", "fetcher-worker"),
        ("NetworkPolicy", "fetcher-manager"),
        ("NetworkPolicy", "fetcher-worker"),
        ("PodDisruptionBudget", "fetcher-manager"),
        ("Service", "fetcher-manager"),
        ("Service", "fetcher-worker"),
        ("ServiceAccount", "fetcher-manager"),
        ("ServiceAccount", "fetcher-worker"),
    }


def test_what_everything_that_can_be_switched_on_makes() -> None:
    assert set(objects(EVERYTHING)) - set(objects({})) == {
        ("HorizontalPodAutoscaler", "fetcher-manager"),
        ("PodDisruptionBudget", "fetcher-worker"),
        ("ScaledObject", "fetcher-worker"),
        ("ServiceAccount", "mine"),
        ("ServiceMonitor", "fetcher"),
        ("TriggerAuthentication", "fetcher-worker"),
    }


def test_what_is_switched_off_is_not_made() -> None:
    assert {kind for kind, _ in objects(NOTHING)} == {
        "ConfigMap", "Deployment", "Service", "ServiceAccount"
    }  # fmt: skip


@pytest.mark.parametrize("values", [{}, EVERYTHING, NOTHING, IN_KIND])
@pytest.mark.parametrize("role", ["manager", "worker"])
def test_the_service_starts_with_what_its_pod_is_given(values: Object, role: str) -> None:
    seen = environment(objects(values), role)

    assert set(seen) <= KNOWN_NAMES
    load_settings(seen, Role(role))


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_a_service_with_tenants_starts_with_what_its_pod_is_given(role: str) -> None:
    found = objects(TENANTS)
    seen = environment(found, role, SECRET_WITH_TENANTS)
    assert set(seen) <= KNOWN_NAMES
    assert load_settings(seen, Role(role)).multi_tenant_enabled
    assert not load_settings(environment(objects({}), role), Role(role)).multi_tenant_enabled


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_files_that_the_tenant_manager_names_are_there(role: str) -> None:
    def mounts(values: Object) -> dict[str, str]:
        (container,) = pod(objects(values), role)["containers"]
        return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}

    volumes = {volume["name"]: volume for volume in pod(objects(TENANTS), role)["volumes"]}
    assert mounts(TENANTS)["certificates"] == "/etc/fetcher/certificates"
    assert volumes["certificates"]["secret"] == {"secretName": "servers", "defaultMode": 0o440}
    assert "certificates" not in mounts({})


def test_workers_of_tenants_are_not_scaled_by_the_queue_of_one() -> None:
    values = merged(TENANTS, {"keda": {"enabled": True}})
    assert not Draft7Validator(VALUES_SCHEMA).is_valid(merged(DEFAULTS, values))
    assert Draft7Validator(VALUES_SCHEMA).is_valid(merged(DEFAULTS, TENANTS))
    assert Draft7Validator(VALUES_SCHEMA).is_valid(merged(DEFAULTS, {"keda": {"enabled": True}}))


@pytest.mark.parametrize("values", [{}, EVERYTHING, IN_KIND])
@pytest.mark.parametrize("role", ["manager", "worker"])
def test_ports_and_paths_are_the_products(values: Object, role: str) -> None:
    found = objects(values)
    settings = load_settings(environment(found, role), Role(role))
    (container,) = pod(found, role)["containers"]
    port = int(settings.listen_address[1:]) if role == "manager" else settings.health_address_port

    assert container["args"] == [f"--role={role}"]
    assert [named["containerPort"] for named in container["ports"]] == [port]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["startupProbe"]["httpGet"]["path"] == "/health"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    policy = found["NetworkPolicy", f"fetcher-{role}"]["spec"]["ingress"]
    assert {rule["ports"][0]["port"] for rule in policy} == {port}


@pytest.mark.parametrize("values", [{}, EVERYTHING, IN_KIND])
@pytest.mark.parametrize("role", ["manager", "worker"])
def test_a_pod_may_drain_and_is_taken_out_before_that_ends(values: Object, role: str) -> None:
    found = objects(values)
    settings = load_settings(environment(found, role), Role(role))
    drain = settings.readyz_drain_delay_sec
    waits = settings.shutdown_job_wait_sec if role == "worker" else 0
    probe = pod(found, role)["containers"][0]["readinessProbe"]

    assert pod(found, role)["terminationGracePeriodSeconds"] >= drain + waits + 40
    assert probe["periodSeconds"] * probe["failureThreshold"] < drain


def test_a_workers_grace_follows_its_settings() -> None:
    assert pod(objects({}), "worker")["terminationGracePeriodSeconds"] == 12 + 310 + 45
    assert pod(objects(EVERYTHING), "worker")["terminationGracePeriodSeconds"] == 20 + 60 + 45


def test_selectors_find_their_pods_and_only_them() -> None:
    found = objects(EVERYTHING)
    labels = {
        role: found["Deployment", f"fetcher-{role}"]["spec"]["template"]["metadata"]["labels"]
        for role in ("manager", "worker")
    }
    for kind, name in found:
        spec = found[kind, name].get("spec", {})
        selector = spec.get("podSelector") or spec.get("selector")
        if selector is None or kind == "ServiceMonitor":
            continue
        wanted = selector.get("matchLabels", selector)
        role = name.removeprefix("fetcher-")
        assert [r for r, has in labels.items() if wanted.items() <= has.items()] == [role], kind


def test_two_releases_share_nothing() -> None:
    one, other = objects(EVERYTHING, "one"), objects(EVERYTHING, "other")
    assert {name for _, name in one} & {name for _, name in other} == {"mine"}
    assert (
        one["Service", "one-manager"]["spec"]["selector"]
        != other["Service", "other-manager"]["spec"]["selector"]
    )


def test_keda_counts_what_is_ready_and_what_runs() -> None:
    found = objects(EVERYTHING)
    spec = found["ScaledObject", "fetcher-worker"]["spec"]
    (trigger,) = spec["triggers"]

    assert trigger["metadata"] == {
        "protocol": "http",
        "excludeUnacknowledged": "false",
        "mode": "QueueLength",
        "queueName": "jobs",
        "vhostName": "jobs",
        "value": "8",
        "activationValue": "0",
    }
    assert spec["scaleTargetRef"]["name"] == "fetcher-worker"
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 40)
    assert (spec["pollingInterval"], spec["cooldownPeriod"]) == (15, 300)
    assert "replicas" not in found["Deployment", "fetcher-worker"]["spec"]
    (reference,) = found["TriggerAuthentication", "fetcher-worker"]["spec"]["secretTargetRef"]
    assert reference == {"parameter": "host", "name": "fetcher-keda", "key": "host"}
    assert trigger["authenticationRef"] == {"name": "fetcher-worker"}


def test_who_has_no_scaler_says_how_many() -> None:
    found = objects({"manager": {"replicaCount": 4}, "worker": {"replicaCount": 7}})
    assert found["Deployment", "fetcher-manager"]["spec"]["replicas"] == 4
    assert found["Deployment", "fetcher-worker"]["spec"]["replicas"] == 7
    assert "replicas" not in objects(EVERYTHING)["Deployment", "fetcher-manager"]["spec"]


def test_the_spool_lies_on_disk() -> None:
    worker = pod(objects({}), "worker")
    mounts = {m["name"]: m["mountPath"] for m in worker["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume["emptyDir"] for volume in worker["volumes"]}

    assert mounts == {"tmp": "/tmp", "spool": "/spool"}  # noqa: S108 # a container's own
    assert volumes["spool"] == {"sizeLimit": "2Gi"}


def test_pods_start_anew_when_their_settings_change() -> None:
    def annotations(values: Object) -> Object:
        made = objects(values)["Deployment", "fetcher-worker"]
        return dict(made["spec"]["template"]["metadata"]["annotations"])

    other = annotations({"worker": {"configmap": {"LOG_LEVEL": "debug"}}})
    assert other["checksum/worker"] != annotations({})["checksum/worker"]
    assert other["checksum/common"] == annotations({})["checksum/common"]


@pytest.mark.parametrize("name", sorted(SECRET_NAMES))
def test_a_secret_among_the_settings_is_refused(name: str) -> None:
    values = merged(DEFAULTS, {"common": {"configmap": {name: "x"}}})
    assert not Draft7Validator(VALUES_SCHEMA).is_valid(values)


@pytest.mark.parametrize(
    "values",
    [
        {"manger": {}},
        {"manager": {"replicas": 3}},
        {"manager": {"replicaCount": "3"}},
        {"manager": {"configmap": {"SERVER_ADDRESS": ":5000"}}},
        {"common": {"configmap": {"JOBS_MAX_PENDING": 5}}},
        {"common": {"configmap": {"READYZ_DRAIN_DELAY_SEC": "twelve"}}},
        {"common": {"existingSecretName": ""}},
        {"worker": {"configmap": {"HEALTH_PORT": "5000"}}},
        {"worker": {"spool": {"sizeLimit": "lots"}}},
        {"keda": {"scaleDownStabilizationSeconds": 3601}},
        {"networkPolicy": {"apiFrom": {}}},
    ],
)
def test_values_that_cannot_be_meant_are_refused(values: Object) -> None:
    assert Draft7Validator(VALUES_SCHEMA).is_valid(DEFAULTS)
    assert not Draft7Validator(VALUES_SCHEMA).is_valid(merged(DEFAULTS, values))


def test_the_charts_version_is_the_products() -> None:
    chart = documents((CHART / "Chart.yaml").read_text(encoding="utf-8"))[0]
    project = (CHART.parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}"' in project
