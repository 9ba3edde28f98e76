"""Tokens verified here, by the keys that an address publishes (``PLUGIN_AUTH_JWKS_URL``)."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import structlog
import trio

from fetcher.adapters.auth.jwk import KeySetUnreadable, VerifyingKey, read_keys
from fetcher.adapters.http_client import HttpClient
from fetcher.domain.access_tokens import AccessToken
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import UtcNow

log = structlog.get_logger(__name__)

LEEWAY_SECONDS: Final = 60
NEVER: Final = 2**63
FETCH_SECONDS: Final = 10.0
KEEP_SECONDS: Final = 3600.0
REFRESH_SECONDS: Final = 30.0
"""The least time between two looks, whoever sends tokens of keys that nobody knows."""
FIRST_REFRESH_SECONDS: Final = 5.0
"""The same while there are no keys at all, and nobody is let in."""


class KeySet:
    """The published keys. They are read when the first token comes, again each hour, and where a
    token names a key that is not among them."""

    def __init__(self, http: HttpClient, url: str, *, now: UtcNow) -> None:
        self._http = http
        self._url = url
        self._now = now
        self._keys: Sequence[VerifyingKey] | None = None
        self._read_at = -math.inf
        self._tried_at = -math.inf
        self._is_behind = True
        """The last look failed: there may be keys that are not known here."""
        self._reading = trio.Lock()

    async def verifies(self, token: AccessToken) -> bool:
        """Signature, ``exp`` and ``nbf``, with a leeway of a minute.

        Neither issuer nor audience is judged: that is the authorization service's. Raise
        PortUnavailable for a token of a key that is unknown because the keys could not be read.
        """
        kid = token.header.get("kid")
        if "crit" in token.header or not isinstance(kid, str | None) or not self._is_timely(token):
            return False
        algorithm = token.header.get("alg")
        keys = await self._keys_for(kid)
        fitting = [key for key in keys if key.algorithm == algorithm and kid in (None, key.kid)]
        return any(key.verifies(token.signature, token.signed) for key in fitting)

    def _is_timely(self, token: AccessToken) -> bool:
        now = self._now().timestamp()
        expires, begins = token.claims.get("exp", NEVER), token.claims.get("nbf", 0)
        if not (isinstance(expires, int | Decimal) and isinstance(begins, int | Decimal)):
            return False
        return begins - LEEWAY_SECONDS <= now < expires + LEEWAY_SECONDS

    async def _keys_for(self, kid: str | None) -> Sequence[VerifyingKey]:
        if self._should_read(kid):
            async with self._reading:
                if self._should_read(kid):
                    await self._read()
        if self._keys is None or (self._is_behind and not self._knows(kid)):
            raise PortUnavailable("no keys to verify tokens with")
        return self._keys

    def _knows(self, kid: str | None) -> bool:
        return kid is None or any(key.kid == kid for key in self._keys or ())

    def _should_read(self, kid: str | None) -> bool:
        now = trio.current_time()
        if self._keys is None:
            return now - self._tried_at >= FIRST_REFRESH_SECONDS
        if now - self._tried_at < REFRESH_SECONDS:
            return False
        if now - self._read_at >= KEEP_SECONDS:
            return True
        return not self._knows(kid)

    async def _read(self) -> None:
        """Keys that are known stay in use where no others can be read."""
        self._tried_at, self._is_behind = trio.current_time(), True
        problem = ""
        try:
            answer = await self._http.call("GET", self._url, deadline_seconds=FETCH_SECONDS)
            if answer.status == 200:
                self._keys = read_keys(answer.body)
                self._read_at, self._is_behind = trio.current_time(), False
            else:
                problem = f"it answers {answer.status}"
        except PortUnavailable as failure:
            problem = str(failure)
        except KeySetUnreadable:
            problem = "its answer is no set of keys"
        if problem:
            log.warning("token_keys_not_read", why=problem, env_var="PLUGIN_AUTH_JWKS_URL")
