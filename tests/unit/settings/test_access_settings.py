"""Who may call: configuration 1.2, 3 and the decisions "Auth on", "JWT" and "Local access"."""

from pathlib import Path

import pytest

from fetcher.settings import Role, SettingsRefused, load_settings
from tests.unit.settings.test_loading import WORKER, load, refusals

ON = {"PLUGIN_AUTH_ENABLED": "true"}
TOKEN = "canary-token-9f3a7c"
SAAS = {
    **WORKER,
    "DEPLOYMENT_MODE": "saas",
    "ALLOW_INSECURE_TLS": "false",
    "MONGO_PARAMETERS": "tls=true",
    "RABBITMQ_URI": "amqps",
}


def problems_of(environment: dict[str, str], role: Role) -> list[str]:
    try:
        load_settings(environment, role)
    except SettingsRefused as refused:
        return refused.problems
    return []


@pytest.mark.parametrize("address", ["", "  "])
def test_authorization_without_an_address_refuses_the_start(address: str) -> None:
    assert refusals({**ON, "PLUGIN_AUTH_ADDRESS": address}) == [
        "PLUGIN_AUTH_ADDRESS: required when PLUGIN_AUTH_ENABLED=true"
    ]


def test_a_worker_asks_nobody_and_needs_no_address() -> None:
    environment = {**WORKER, **ON, "FETCHER_ACCESS_TOKEN": "short"}
    assert problems_of(environment, Role.WORKER) == []
    assert problems_of({**environment, "PLUGIN_AUTH_ADDRESS": "ftp://a"}, Role.WORKER) == [
        "PLUGIN_AUTH_ADDRESS: must be an http:// or https:// address"
    ]


def test_address_is_kept_where_authorization_is_off() -> None:
    """The shipped file has one; it is neither judged nor used."""
    settings = load(PLUGIN_AUTH_ADDRESS="http://localhost:4000")
    assert not settings.plugin_auth_enabled
    assert settings.plugin_auth_address == "http://localhost:4000"


@pytest.mark.parametrize(
    "address", ["http://localhost:4000", "https://auth.acme.test/base/", "HTTPS://auth.acme.test"]
)
def test_usable_address(address: str) -> None:
    assert (
        load(PLUGIN_AUTH_ENABLED="true", PLUGIN_AUTH_ADDRESS=address).plugin_auth_address == address
    )


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("auth.acme.test", "must be an http:// or https:// address"),
        ("ftp://auth.acme.test", "must be an http:// or https:// address"),
        ("http://", "must be an http:// or https:// address"),
        ("http://[", "must be an http:// or https:// address"),
        ("http://a:99999", "must be an http:// or https:// address"),
        ("http://a b", "must be an http:// or https:// address"),
        ("http://\u00e9", "must be an http:// or https:// address"),
        ("http://u:canary@a", "must not have a user, a password or a fragment"),
        ("http://a/#x", "must not have a user, a password or a fragment"),
        ("http://a/?x=1", "must not have a query"),
    ],
)
def test_unusable_address_is_refused_and_not_told(address: str, rule: str) -> None:
    assert refusals({**ON, "PLUGIN_AUTH_ADDRESS": address}) == [f"PLUGIN_AUTH_ADDRESS: {rule}"]


def test_keys_are_of_an_address_too_and_need_the_service() -> None:
    keys = "https://auth.acme.test/keys?tenant=a"
    both = {**ON, "PLUGIN_AUTH_ADDRESS": "https://auth.acme.test", "PLUGIN_AUTH_JWKS_URL": keys}
    assert load_settings(both, Role.ALL).plugin_auth_jwks_url == keys
    assert refusals({**both, "PLUGIN_AUTH_JWKS_URL": "keys.json"}) == [
        "PLUGIN_AUTH_JWKS_URL: must be an http:// or https:// address"
    ]
    assert refusals({"PLUGIN_AUTH_JWKS_URL": keys}) == [
        "PLUGIN_AUTH_JWKS_URL: has no effect without PLUGIN_AUTH_ENABLED=true"
    ]


def test_saas_mode_asks_over_tls_only() -> None:
    plain = {
        **SAAS,
        **ON,
        "PLUGIN_AUTH_ADDRESS": "http://auth.acme.test",
        "PLUGIN_AUTH_JWKS_URL": "http://auth.acme.test/keys",
    }
    rule = "must begin with https:// when DEPLOYMENT_MODE=saas"
    assert refusals(plain, Role.MANAGER) == [
        f"PLUGIN_AUTH_ADDRESS: {rule}",
        f"PLUGIN_AUTH_JWKS_URL: {rule}",
    ]
    with_tls = {name: value.replace("http://", "https://") for name, value in plain.items()}
    assert problems_of(with_tls, Role.MANAGER) == []


@pytest.mark.parametrize(
    ("mode", "enabled", "is_refused"),
    [
        ("byoc", "false", True),
        ("saas", "false", True),
        ("local", "false", False),
        ("byoc", "true", False),
    ],
)
def test_tenants_need_authorization_but_on_a_developer_s_machine(
    mode: str, enabled: str, is_refused: bool
) -> None:
    environment = {
        **SAAS,
        "DEPLOYMENT_MODE": mode,
        "MULTI_TENANT_ENABLED": "true",
        "PLUGIN_AUTH_ENABLED": enabled,
        "PLUGIN_AUTH_ADDRESS": "https://auth.acme.test",
    }
    rule = (
        "PLUGIN_AUTH_ENABLED: PLUGIN_AUTH_ENABLED=true is required when MULTI_TENANT_ENABLED=true"
    )
    assert (rule in problems_of(environment, Role.MANAGER)) is is_refused


def test_access_token_is_a_secret_and_may_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = load(FETCHER_ACCESS_TOKEN_FILE=str(file))
    assert settings.fetcher_access_token.get_secret_value() == TOKEN
    assert TOKEN not in repr(settings)
    both = {"FETCHER_ACCESS_TOKEN": TOKEN, "FETCHER_ACCESS_TOKEN_FILE": str(file)}
    assert refusals(both) == ["FETCHER_ACCESS_TOKEN: set it or FETCHER_ACCESS_TOKEN_FILE, not both"]


@pytest.mark.parametrize(
    "token", ["hunter2", "x" * 15, "x" * 1025, "x" * 8 + " " + "x" * 8, "\u00e9" * 16]
)
def test_access_token_that_nobody_could_send_or_anybody_could_guess_is_refused(token: str) -> None:
    [problem] = refusals({"FETCHER_ACCESS_TOKEN": token})
    assert problem.startswith("FETCHER_ACCESS_TOKEN: must have 16 to 1024 printable ASCII")
    assert token not in problem


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        ("", True),
        ("127.0.0.1:4006", True),
        ("[::1]:4006", True),
        ("localhost:4006", True),
        (":4006", False),
        ("0.0.0.0:4006", False),
        ("[::]:4006", False),
        ("10.0.0.1:1", False),
    ],
)
def test_whether_only_this_machine_reaches_the_api(address: str, is_loopback: bool) -> None:
    assert load(SERVER_ADDRESS=address).listens_on_loopback is is_loopback
