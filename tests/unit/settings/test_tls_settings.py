"""Plain text to dependencies: permitted by a switch, never in SaaS mode (spec 4, 17.3, 17.4)."""

import pytest

from fetcher.settings import Role
from fetcher.settings.tls_rules import dependencies
from tests.unit.settings.test_loading import WORKER, load, refusals
from tests.unit.settings.test_redis_settings import encoded

CANARY = "canary-pw"
SAAS = "DEPLOYMENT_MODE: SaaS mode requires TLS on all platform dependencies:"

EVERYTHING = {
    **WORKER,
    "REDIS_HOST": "redis.test",
    "OBJECT_STORAGE_ENDPOINT": "http://s3.test:9000",
}
ALL_TLS = {
    **EVERYTHING,
    "MONGO_PARAMETERS": "tls=true",
    "RABBITMQ_URI": "AMQPS",
    "REDIS_TLS": "true",
    "OBJECT_STORAGE_ENDPOINT": "HTTPS://s3.test:9000",
    "ALLOW_INSECURE_TLS": "",
}


def without_tls(environment: dict[str, str], role: Role = Role.WORKER) -> list[str]:
    """The dependencies that SaaS mode refuses."""
    problems = refusals({**environment, "DEPLOYMENT_MODE": "SaaS"}, role)
    end = " is not using TLS (DEPLOYMENT_MODE=saas)"
    return [p.removeprefix(SAAS).removesuffix(end).strip() for p in problems if p.endswith(end)]


def test_plain_text_dependencies_need_a_permission() -> None:
    assert refusals({**EVERYTHING, "ALLOW_INSECURE_TLS": ""}, Role.WORKER) == [
        f"ALLOW_INSECURE_TLS: {name} has no TLS (set ALLOW_INSECURE_TLS=true to allow that)"
        for name in ("mongodb", "rabbitmq", "redis", "s3")
    ]
    assert load(Role.WORKER, **EVERYTHING).allow_insecure_tls


@pytest.mark.parametrize("text", ["true", "1", "YES", " on ", "t"])
def test_permission_is_a_boolean(text: str) -> None:
    assert load(Role.WORKER, **{**EVERYTHING, "ALLOW_INSECURE_TLS": text}).allow_insecure_tls


@pytest.mark.parametrize("text", ["y", "because"])
def test_permission_that_is_no_boolean_is_refused(text: str) -> None:
    [problem] = refusals({**EVERYTHING, "ALLOW_INSECURE_TLS": text}, Role.WORKER)
    assert problem.startswith("ALLOW_INSECURE_TLS: must be one of true, false")


@pytest.mark.parametrize("mode", ["", "local", "byoc"])
def test_outside_of_saas_mode_what_is_permitted_is_taken(mode: str) -> None:
    assert load(Role.WORKER, **{**EVERYTHING, "DEPLOYMENT_MODE": mode}).redis_host == "redis.test"


def test_saas_mode_names_all_that_is_plain_in_one_order() -> None:
    assert without_tls(EVERYTHING) == ["mongodb", "rabbitmq", "redis", "s3"]
    problems = refusals({**EVERYTHING, "DEPLOYMENT_MODE": "saas"}, Role.WORKER)
    assert "ALLOW_INSECURE_TLS: refused with DEPLOYMENT_MODE=saas" in problems


def test_saas_mode_names_what_is_plain_alone() -> None:
    assert without_tls({**ALL_TLS, "RABBITMQ_URI": "amqp"}) == ["rabbitmq"]
    assert without_tls({**ALL_TLS, "OBJECT_STORAGE_ENDPOINT": "http://s3x:9000"}) == ["s3"]


def test_saas_mode_judges_the_bucket_in_every_role_that_has_it() -> None:
    manager = {**ALL_TLS, "OBJECT_STORAGE_ENDPOINT": "http://s3x:9000"}
    assert without_tls(manager, Role.MANAGER) == ["s3"]


@pytest.mark.parametrize("role", [Role.MANAGER, Role.WORKER])
def test_saas_mode_takes_everything_with_tls(role: Role) -> None:
    settings = load(role, **{**ALL_TLS, "DEPLOYMENT_MODE": "saas"})
    assert [each.name for each in dependencies(settings) if each.has_tls] == [
        "mongodb",
        "rabbitmq",
        "redis",
        "s3",
    ]
    no_endpoint = {**ALL_TLS, "DEPLOYMENT_MODE": "saas", "OBJECT_STORAGE_ENDPOINT": ""}
    assert load(role, **no_endpoint).object_storage_endpoint == ""


def test_settings_of_tenants_are_not_judged_without_tenants() -> None:
    idle = {"MULTI_TENANT_REDIS_HOST": "r", "MULTI_TENANT_URL": "http://tm.test"}
    assert load(Role.WORKER, **ALL_TLS, **idle, DEPLOYMENT_MODE="saas").multi_tenant_url


def test_saas_mode_judges_what_tenants_need() -> None:
    tenants = {
        **ALL_TLS,
        "MULTI_TENANT_ENABLED": "true",
        "MULTI_TENANT_URL": "HTTP://tm.test",
        "MULTI_TENANT_REDIS_HOST": "redis.test",
        "MULTI_TENANT_ALLOW_INSECURE_HTTP": "true",
    }
    assert without_tls(tenants) == ["rabbitmq", "multi_tenant_redis", "tenant_manager"]
    problems = refusals({**tenants, "DEPLOYMENT_MODE": "saas"}, Role.WORKER)
    assert "MULTI_TENANT_ALLOW_INSECURE_HTTP: refused with DEPLOYMENT_MODE=saas" in problems
    with_tls = {"MULTI_TENANT_REDIS_TLS": "true", "RABBITMQ_TLS": "true"}
    assert without_tls({**tenants, **with_tls}) == ["tenant_manager"]
    assert without_tls({**tenants, **with_tls, "MULTI_TENANT_URL": "HTTPS://tm.test"}) == []


@pytest.mark.parametrize("uri", ["://bad", f"://kim:{CANARY}@h", "https://h1/db", "mongodb://"])
def test_an_address_that_cannot_be_parsed_is_another_refusal(uri: str) -> None:
    environment = {**ALL_TLS, "MONGO_URI": uri, "DEPLOYMENT_MODE": "saas"}
    problems = refusals(environment, Role.WORKER)
    assert "MONGO_URI: must be mongodb, mongodb+srv, or a whole address that begins so" in problems
    assert CANARY not in str(problems)
    if uri.startswith("://"):
        assert len(problems) == 1


@pytest.mark.parametrize("endpoint", ["://nothing", "s3.test:9000", "ftp://s3.test"])
def test_an_endpoint_that_cannot_be_parsed_is_another_refusal(endpoint: str) -> None:
    environment = {**ALL_TLS, "OBJECT_STORAGE_ENDPOINT": endpoint, "DEPLOYMENT_MODE": "saas"}
    assert refusals(environment, Role.WORKER) == [
        "OBJECT_STORAGE_ENDPOINT: must begin with http:// or https://"
    ]


@pytest.mark.parametrize("scheme", ["://nothing", "amqps://q1/v", "http"])
def test_a_scheme_of_the_broker_that_is_none_is_refused(scheme: str) -> None:
    environment = {**ALL_TLS, "RABBITMQ_URI": scheme, "ALLOW_INSECURE_TLS": "true"}
    assert refusals(environment, Role.WORKER) == ["RABBITMQ_URI: must be amqp or amqps"]


def test_no_refusal_has_a_password() -> None:
    environment = {**EVERYTHING, "MONGO_URI": f"mongodb://user:{CANARY}@h1/db"}
    problems = refusals({**environment, "DEPLOYMENT_MODE": "saas"}, Role.WORKER)
    assert CANARY not in str(problems)
    assert without_tls(environment)[0] == "mongodb"


def test_sqlite_sources_are_refused_in_saas_mode() -> None:
    environment = {**ALL_TLS, "DEPLOYMENT_MODE": "saas", "DATASOURCE_SQLITE_DIR": "/srv/sources"}
    assert refusals(environment, Role.WORKER) == [
        "DATASOURCE_SQLITE_DIR: refused with DEPLOYMENT_MODE=saas"
    ]


def test_trust_roots_of_mongodb_are_tls(authority_pem: str) -> None:
    environment = {**ALL_TLS, "MONGO_PARAMETERS": "", "MONGO_TLS_CA_CERT": encoded(authority_pem)}
    settings = load(Role.WORKER, **environment, DEPLOYMENT_MODE="saas")
    assert next(iter(dependencies(settings))).has_tls


def test_trust_roots_that_contradict_the_address_or_are_none_are_refused(
    authority_pem: str,
) -> None:
    roots = encoded(authority_pem)
    environment = {**ALL_TLS, "MONGO_PARAMETERS": "ssl=0", "MONGO_TLS_CA_CERT": roots}
    assert "MONGO_TLS_CA_CERT: contradicts the address, which turns TLS off" in refusals(
        environment, Role.WORKER
    )
    for text in ("not*base64", encoded("no certificate")):
        assert refusals({**ALL_TLS, "MONGO_TLS_CA_CERT": text}, Role.WORKER) == [
            "MONGO_TLS_CA_CERT: must be the base64 of certificates in PEM"
        ]
