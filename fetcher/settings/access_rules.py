"""Rules for who may call: nearly all are the manager's alone, a worker asks nobody."""

import re
from typing import Final
from urllib.parse import urlsplit

from fetcher.settings.model import DeploymentMode, Role, Settings

MIN_TOKEN_CHARACTERS: Final = 16
MAX_TOKEN_CHARACTERS: Final = 1024
"""A request's head has 4096 bytes for all its headers."""

_TOKEN = re.compile(r"[\x21-\x7e]*", re.ASCII)
_URL = re.compile(r"[\x21-\x7e]*", re.ASCII)


def access_rules(settings: Settings, role: Role) -> list[str]:
    addresses = _address_rules(settings) if settings.plugin_auth_enabled else []
    if not role.manages:
        return addresses
    return [
        *addresses,
        *_service_rules(settings),
        *_tenant_rules(settings),
        *_token_rules(settings),
    ]


def _address_rules(settings: Settings) -> list[str]:
    needs_tls = settings.deployment_mode is DeploymentMode.SAAS
    address, keys = settings.plugin_auth_address, settings.plugin_auth_jwks_url
    problems = {
        "PLUGIN_AUTH_ADDRESS": _url_problem(address, needs_tls=needs_tls, has_query=False),
        "PLUGIN_AUTH_JWKS_URL": _url_problem(keys, needs_tls=needs_tls, has_query=True),
    }
    return [f"{name}: {problem}" for name, problem in problems.items() if problem]


def _service_rules(settings: Settings) -> list[str]:
    if settings.plugin_auth_enabled and not settings.plugin_auth_address:
        return ["PLUGIN_AUTH_ADDRESS: required when PLUGIN_AUTH_ENABLED=true"]
    if settings.plugin_auth_jwks_url and not settings.plugin_auth_enabled:
        return ["PLUGIN_AUTH_JWKS_URL: has no effect without PLUGIN_AUTH_ENABLED=true"]
    return []


def _tenant_rules(settings: Settings) -> list[str]:
    """Without the service the tenant would be whatever an unverified token says."""
    is_local = settings.deployment_mode is DeploymentMode.LOCAL
    if settings.multi_tenant_enabled and not settings.plugin_auth_enabled and not is_local:
        return [
            "PLUGIN_AUTH_ENABLED: PLUGIN_AUTH_ENABLED=true is required when"
            " MULTI_TENANT_ENABLED=true"
        ]
    return []


def _token_rules(settings: Settings) -> list[str]:
    token = settings.fetcher_access_token.get_secret_value()
    if not token:
        return []
    fits = MIN_TOKEN_CHARACTERS <= len(token) <= MAX_TOKEN_CHARACTERS
    if fits and _TOKEN.fullmatch(token):
        return []
    return [
        f"FETCHER_ACCESS_TOKEN: must have {MIN_TOKEN_CHARACTERS} to {MAX_TOKEN_CHARACTERS}"
        " printable ASCII characters without spaces"
    ]


def _url_problem(url: str, *, needs_tls: bool, has_query: bool) -> str:
    """Empty where the address can be used, or none is given. It is never told: somebody may put a
    password in."""
    if not url:
        return ""
    try:
        parts = urlsplit(url) if _URL.fullmatch(url) else None
        is_url = parts is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_url = None, False
    if parts is None or not is_url or parts.scheme not in ("http", "https"):
        return "must be an http:// or https:// address"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must not have a user, a password or a fragment"
    if parts.query and not has_query:
        return "must not have a query"
    if needs_tls and parts.scheme != "https":
        return "must begin with https:// when DEPLOYMENT_MODE=saas"
    return ""
