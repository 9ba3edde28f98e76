"""Who judges callers: the authorization service, one token, or nobody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import structlog

from fetcher.adapters.auth.local_token import LocalToken
from fetcher.adapters.auth.service import open_auth_service
from fetcher.ports import Authorizer
from fetcher.settings import Settings

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_authorizer(settings: Settings) -> AsyncIterator[Authorizer | None]:
    """None where everybody may do everything. A service that is away stops no start."""
    if settings.plugin_auth_enabled:
        async with open_auth_service(
            settings.plugin_auth_address,
            jwks_url=settings.plugin_auth_jwks_url,
            now=lambda: datetime.now(UTC),
        ) as service:
            await service.check_health()
            yield service
        return
    token = settings.fetcher_access_token.get_secret_value()
    if token:
        yield LocalToken(token)
        return
    if not settings.listens_on_loopback:
        log.warning(
            "authorization_off",
            meaning="whoever reaches the port may do everything",
            env_var="PLUGIN_AUTH_ENABLED or FETCHER_ACCESS_TOKEN",
        )
    yield None
