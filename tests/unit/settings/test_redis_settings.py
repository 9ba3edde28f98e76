"""REDIS_* and SCHEMA_CACHE_TTL_SECONDS (spec configuration 2.6 as the decisions changed it)."""

import base64

import pytest

from fetcher.settings import Role, Settings, load_settings, redis_ca_pem, redis_place
from tests.servers.certificates import Authority
from tests.unit.settings.test_loading import WORKER, refusals

PLAIN = {"ALLOW_INSECURE_TLS": "true"}
CANARY = "canary-5ecret"


def load(**environment: str) -> Settings:
    return load_settings({**PLAIN, **environment}, Role.ALL)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("host", "port", "place"),
    [
        ("redis.test", "", ("redis.test", 6379)),
        ("redis.test", "5707", ("redis.test", 5707)),
        ("redis.test:7000", "5707", ("redis.test", 7000)),
        (" 10.0.0.9 ", "", ("10.0.0.9", 6379)),
        ("::1", "6400", ("::1", 6400)),
        ("[::1]", "6400", ("::1", 6400)),
        ("[2a00::7]:7000", "6400", ("2a00::7", 7000)),
        ("fetcher_valkey", "", ("fetcher_valkey", 6379)),
    ],
)
def test_the_host_may_hold_the_port(host: str, port: str, place: tuple[str, int]) -> None:
    assert redis_place(load(REDIS_HOST=host, REDIS_PORT=port)) == place


@pytest.mark.parametrize(
    "host",
    [
        "redis://redis.test:6379",
        f"user:{CANARY}@redis.test:6379",
        "redis.test/0",
        "two words",
        ":6379",
        "rédis.test",
        "a\nb",
    ],
)
def test_what_is_no_host_is_refused_and_not_repeated(host: str) -> None:
    assert refusals({**PLAIN, "REDIS_HOST": host}) == [
        "REDIS_HOST: must be a host name or an address, host:port at most"
    ]


@pytest.mark.parametrize("port", ["0", "65536", "x", "", "9" * 5000, "٦٣٧٩"])
def test_what_is_no_port_behind_the_host(port: str) -> None:
    assert refusals({**PLAIN, "REDIS_HOST": f"redis.test:{port}"}) == [
        "REDIS_HOST: its port must be between 1 and 65535"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_PORT", "0"),
        ("REDIS_PORT", "six"),
        ("REDIS_DB", "three"),
        ("REDIS_DB", "-1"),
        ("REDIS_TLS", "maybe"),
        ("SCHEMA_CACHE_TTL_SECONDS", "soon"),
        ("SCHEMA_CACHE_TTL_SECONDS", "-1"),
        ("SCHEMA_CACHE_TTL_SECONDS", "nan"),
        ("SCHEMA_CACHE_TTL_SECONDS", "86401"),
    ],
)
def test_what_cannot_be_read_stops_the_start(name: str, value: str) -> None:
    [problem] = refusals({**PLAIN, "REDIS_HOST": "redis.test", name: value})
    assert problem.startswith(f"{name}: ")


def test_defaults() -> None:
    settings = load()
    assert settings.redis_host == ""
    assert settings.redis_db == 0
    assert settings.schema_cache_ttl_seconds == 300
    assert load(SCHEMA_CACHE_TTL_SECONDS="45").schema_cache_ttl_seconds == 45
    assert load(SCHEMA_CACHE_TTL_SECONDS="0").schema_cache_ttl_seconds == 0
    assert load(SCHEMA_CACHE_TTL_SECONDS="").schema_cache_ttl_seconds == 300
    assert load(REDIS_DB="3").redis_db == 3


def test_the_password_is_a_secret() -> None:
    settings = load(REDIS_HOST="redis.test", REDIS_PASSWORD=CANARY)
    assert CANARY not in repr(settings)
    assert settings.redis_password.get_secret_value() == CANARY


def test_plain_text_needs_a_permission() -> None:
    environment = {"REDIS_HOST": "redis.test"}
    assert refusals(environment) == [
        "ALLOW_INSECURE_TLS: redis has no TLS (set ALLOW_INSECURE_TLS=true to allow that)"
    ]
    assert load_settings({**environment, "REDIS_TLS": "true"}, Role.ALL).redis_tls


@pytest.mark.parametrize("role", list(Role))
def test_saas_mode_takes_no_plain_text_in_any_role_that_has_it(role: Role) -> None:
    environment = {
        **WORKER,
        "DEPLOYMENT_MODE": "saas",
        "OBJECT_STORAGE_ENDPOINT": "http://s3.test:9000",
        "REDIS_HOST": "redis.test",
    }
    told = [p.partition(" is not using TLS") for p in refusals(environment, role)]
    names = [before.split()[-1] for before, found, _ in told if found]
    assert names == ["mongodb", "rabbitmq", "redis", "s3"]
    with_tls = [p for p in refusals({**environment, "REDIS_TLS": "on"}, role) if "redis" in p]
    assert with_tls == []


def test_trust_roots_are_read() -> None:
    ca = Authority().ca
    settings = load(REDIS_HOST="redis.test", REDIS_TLS="true", REDIS_CA_CERT=encoded(ca))
    assert redis_ca_pem(settings) == ca
    assert redis_ca_pem(load(REDIS_HOST="redis.test")) == ""


@pytest.mark.parametrize(
    "text",
    [
        Authority().ca,
        "not*base64",
        encoded("no certificate"),
        encoded("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        base64.b64encode(b"\xff\xfe").decode(),
    ],
)
def test_what_is_no_trust_root_stops_the_start(text: str) -> None:
    environment = {"REDIS_HOST": "redis.test", "REDIS_TLS": "true", "REDIS_CA_CERT": text}
    assert refusals(environment) == ["REDIS_CA_CERT: must be the base64 of certificates in PEM"]


def test_trust_roots_without_tls_would_have_no_effect() -> None:
    environment = {**PLAIN, "REDIS_HOST": "redis.test", "REDIS_CA_CERT": encoded(Authority().ca)}
    assert refusals(environment) == ["REDIS_CA_CERT: has no effect without REDIS_TLS=true"]
