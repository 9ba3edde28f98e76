"""Which authorizer the settings make."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fetcher.adapters.auth.local_token import LocalToken
from fetcher.adapters.auth.service import AuthService
from fetcher.bootstrap.access import open_authorizer
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.host_guard import own_hosts
from fetcher.bridge import open_asyncio
from fetcher.settings import Role, load_settings

TOKEN = "canary-token-9f3a7c"
# Nothing listens on port 1: the look at its health fails at once.
SERVICE = {"PLUGIN_AUTH_ENABLED": "true", "PLUGIN_AUTH_ADDRESS": "http://127.0.0.1:1"}


async def made(**environment: str) -> tuple[type, list[str]]:
    with capture_logs() as logs:
        async with (
            open_asyncio(pytest.fail),
            open_authorizer(load_settings(environment, Role.ALL)) as authorizer,
        ):
            return type(authorizer), [log["event"] for log in logs]


async def test_service_wins_over_the_token() -> None:
    kind, _ = await made(**SERVICE)
    assert kind is AuthService
    kind, told = await made(**SERVICE, FETCHER_ACCESS_TOKEN=TOKEN)
    assert kind is AuthService
    assert told == ["auth_service_not_healthy"]


async def test_token_without_a_service() -> None:
    assert await made(FETCHER_ACCESS_TOKEN=TOKEN) == (LocalToken, [])


@pytest.mark.parametrize(
    ("address", "told"), [("", []), ("127.0.0.1:0", []), (":4006", ["authorization_off"])]
)
async def test_nobody_is_asked_and_the_log_says_so_where_others_reach_the_port(
    address: str, told: list[str]
) -> None:
    assert await made(SERVER_ADDRESS=address) == (type(None), told)


async def test_opened_adapters_have_it(tmp_path: Path) -> None:
    settings = load_settings(
        {"FETCHER_ACCESS_TOKEN": TOKEN, "FETCHER_DATA_DIR": str(tmp_path)}, Role.ALL
    )
    async with open_adapters(settings, Role.ALL) as adapters:
        assert isinstance(adapters.authorizer, LocalToken)


def test_service_is_no_source_of_data() -> None:
    urls = {
        "PLUGIN_AUTH_ADDRESS": "https://Auth.acme.test:4000/base",
        "PLUGIN_AUTH_JWKS_URL": "https://keys.acme.test/jwks",
    }
    settings = load_settings({"PLUGIN_AUTH_ENABLED": "true", **urls}, Role.ALL)
    assert own_hosts(settings) == {"auth.acme.test", "keys.acme.test"}
    off = load_settings({"PLUGIN_AUTH_ADDRESS": urls["PLUGIN_AUTH_ADDRESS"]}, Role.ALL)
    assert own_hosts(off) == set()
