"""What tenants need before the start (spec configuration 3.2, 17.2)."""

import pytest

from fetcher.settings import Role, SettingsRefused, load_settings
from tests.unit.settings.test_loading import WORKER, load, refusals
from tests.unit.settings.test_redis_settings import encoded

REQUIRED = "required when MULTI_TENANT_ENABLED=true"

OF_ONE_TENANT = ("MONGO_", "RABBITMQ_HOST", "RABBITMQ_DEFAULT_")
TENANTS = {
    # where a tenant's things lie is told by the Tenant Manager
    **{name: text for name, text in WORKER.items() if not name.startswith(OF_ONE_TENANT)},
    "MULTI_TENANT_ENABLED": "yes",
    "MULTI_TENANT_URL": "https://tm.example:8080",
    "MULTI_TENANT_SERVICE_API_KEY": "key",
    "MULTI_TENANT_REDIS_HOST": "redis.test",
    "ENV_NAME": "staging",
}


def problems(role: Role = Role.WORKER, **changes: str) -> list[str]:
    try:
        load_settings({**TENANTS, **changes}, role)
    except SettingsRefused as refused:
        return refused.problems
    return []


@pytest.mark.parametrize("role", list(Role))
def test_neither_a_record_store_nor_a_broker_is_named_for_all(role: Role) -> None:
    assert problems(role) == []
    settings = load_settings(TENANTS, role)
    assert not settings.needs_data_folder
    assert settings.guards_hosts


def test_a_label_of_tenants_needs_tenants() -> None:
    assert refusals({**WORKER, "METRICS_TENANT_LABEL": "true"}, Role.WORKER) == [
        "METRICS_TENANT_LABEL: has no effect without MULTI_TENANT_ENABLED=true"
    ]
    assert load(Role.WORKER, **WORKER, METRICS_TENANT_LABEL="false").metrics_tenant_label is False
    assert problems(METRICS_TENANT_LABEL="true") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RECORD_STORE", "sqlite"),
        ("QUEUE_BACKEND", "memory"),
        ("OBJECT_STORE", "folder"),
        ("DATASOURCE_SQLITE_DIR", "/srv/files"),
        ("FETCHER_ACCESS_TOKEN", "t" * 32),
    ],
)
def test_what_all_tenants_would_share_is_refused(name: str, text: str) -> None:
    assert problems(Role.ALL, **{name: text}) == [f"{name}: refused with MULTI_TENANT_ENABLED=true"]


def test_results_need_a_bucket() -> None:
    assert problems(Role.WORKER, OBJECT_STORAGE_BUCKET="") == [f"OBJECT_STORAGE_BUCKET: {REQUIRED}"]
    assert problems(Role.MANAGER, OBJECT_STORAGE_BUCKET="") == []


def test_in_saas_mode_brokers_have_tls_unless_the_tenant_manager_says_else() -> None:
    saas = {
        "DEPLOYMENT_MODE": "saas",
        "ALLOW_INSECURE_TLS": "",
        "MULTI_TENANT_REDIS_TLS": "true",
        "PLUGIN_AUTH_ENABLED": "true",
        "PLUGIN_AUTH_ADDRESS": "https://auth.test",
    }
    [problem] = problems(Role.ALL, **saas)
    assert problem == (
        "DEPLOYMENT_MODE: SaaS mode requires TLS on all platform dependencies:"
        " rabbitmq is not using TLS (DEPLOYMENT_MODE=saas)"
    )
    assert problems(Role.ALL, **saas, RABBITMQ_TLS="true") == []
    # elsewhere each tenant's own places are judged when they are opened
    assert problems(Role.ALL, ALLOW_INSECURE_TLS="", MULTI_TENANT_REDIS_TLS="true") == []


def test_what_is_missing_is_named_in_its_order() -> None:
    missing = {
        "MULTI_TENANT_URL": "",
        "MULTI_TENANT_SERVICE_API_KEY": "",
        "MULTI_TENANT_REDIS_HOST": "",
    }
    names = [f"{name}: {REQUIRED}" for name in missing]
    worker = [*names[:2], f"{names[2]} (used for tenant event-driven discovery)"]
    assert problems(Role.WORKER, **missing) == worker
    assert problems(Role.MANAGER, **missing)[:3] == names
    for at, name in enumerate(missing):
        assert problems(Role.WORKER, **{name: ""}) == [worker[at]]


def test_nothing_is_required_without_tenants() -> None:
    assert not load(Role.WORKER, **WORKER).multi_tenant_enabled


@pytest.mark.parametrize(
    ("env_name", "environment_name", "name"),
    [
        ("development", "", "ENV_NAME"),
        ("", "", "ENV_NAME"),
        ("staging", "development", "ENVIRONMENT_NAME"),
    ],
)
def test_tenants_are_heard_of_in_two_environments_only(
    env_name: str, environment_name: str, name: str
) -> None:
    assert problems(ENV_NAME=env_name, ENVIRONMENT_NAME=environment_name) == [
        f'{name}: must be "staging" or "production" when MULTI_TENANT_ENABLED=true'
    ]
    assert problems(ENV_NAME=env_name, ENVIRONMENT_NAME="production") == []


def test_plain_http_to_the_tenant_manager_has_a_switch_of_its_own() -> None:
    url = "http://tm.example:8080"
    [problem] = problems(MULTI_TENANT_URL=url)
    assert problem.startswith("MULTI_TENANT_URL: must be an https:// address")
    assert problems(MULTI_TENANT_URL=url, MULTI_TENANT_ALLOW_INSECURE_HTTP="true") == []


@pytest.mark.parametrize("url", ["tm.example", "ftp://tm", "https://", "https://[", "https://h:0"])
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    assert problems(MULTI_TENANT_URL=url) == ["MULTI_TENANT_URL: must be an https:// address"]


def test_trust_roots_are_judged(authority_pem: str) -> None:
    roots = encoded(authority_pem)
    assert problems(MULTI_TENANT_REDIS_CA_CERT=roots, MULTI_TENANT_REDIS_TLS="on") == []
    assert problems(MULTI_TENANT_REDIS_CA_CERT="x", MULTI_TENANT_REDIS_TLS="on") == [
        "MULTI_TENANT_REDIS_CA_CERT: must be the base64 of certificates in PEM"
    ]
    assert problems(MULTI_TENANT_REDIS_CA_CERT=roots) == [
        "MULTI_TENANT_REDIS_CA_CERT: has no effect without MULTI_TENANT_REDIS_TLS=true"
    ]


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("MULTI_TENANT_MAX_TENANT_POOLS", 100),
        ("MULTI_TENANT_MAX_REQUESTS", 64),
        ("MULTI_TENANT_IDLE_TIMEOUT_SEC", 300),
        ("MULTI_TENANT_CIRCUIT_BREAKER_THRESHOLD", 5),
        ("MULTI_TENANT_CIRCUIT_BREAKER_TIMEOUT_SEC", 30),
        ("MULTI_TENANT_CACHE_TTL_SEC", 120),
        ("MULTI_TENANT_TIMEOUT", 30),
        ("MULTI_TENANT_RECONCILE_INTERVAL_SEC", 60),
    ],
)
def test_counts_of_tenants_have_defaults(name: str, default: int) -> None:
    for text, count in {"": default, "0": default, "-1": default, "40": 40}.items():
        assert getattr(load(Role.ALL, **{name: text}), name.lower()) == count
    assert refusals({name: "soon"}) == [f"{name}: must be a whole number"]


@pytest.mark.parametrize(
    "host", ["redis.test:6379", "redis://redis.test", "redis.test/0", "[::1]:6379", "10.0.0.7:6379"]
)
def test_the_host_of_the_events_redis_is_a_host_alone(host: str) -> None:
    assert problems(MULTI_TENANT_REDIS_HOST=host) == [
        "MULTI_TENANT_REDIS_HOST: must be a name or an address alone"
        " (its port is MULTI_TENANT_REDIS_PORT)"
    ]


@pytest.mark.parametrize("host", ["redis", "redis.test", "10.0.0.7", "fd00::7", "[fd00::7]"])
def test_names_and_addresses_are_hosts_of_the_events_redis(host: str) -> None:
    assert problems(MULTI_TENANT_REDIS_HOST=host) == []


@pytest.mark.parametrize("more", ["?x=1", "/base?x=1", "#top"])
def test_paths_can_be_put_behind_the_tenant_managers_address(more: str) -> None:
    assert problems(MULTI_TENANT_URL=f"https://tm.example:8080{more}") == [
        "MULTI_TENANT_URL: must be an address without query and fragment"
    ]
