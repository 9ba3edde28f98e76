"""The authorization service ("plugin-auth", spec rest-api 3)."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio

from fetcher.adapters.auth.answers import AnswerUnreadable, verdict_of
from fetcher.adapters.auth.key_set import KeySet
from fetcher.adapters.http_client import HttpClient, open_http
from fetcher.domain.access import Granted, Permission, Refusal, Refused, Verdict, subject_of
from fetcher.domain.access_tokens import TokenMalformed, read_token
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.json_text import dumps
from fetcher.ports import UtcNow

log = structlog.get_logger(__name__)

DEADLINE_SECONDS: Final = 30.0
HEALTH_SECONDS: Final = 3.0
HEALTHY: Final = b"healthy"
MAX_ANSWER_BYTES: Final = 64 * 1024

_UNAUTHORIZED: Final = Refused(Refusal.UNAUTHORIZED)


class AuthService:
    """Authorizer that asks the service every time; open it with :func:`open_auth_service`."""

    relays = True

    def __init__(
        self, http: HttpClient, address: str, *, keys: KeySet | None, deadline_seconds: float
    ) -> None:
        self._http = http
        self._address = address
        self._keys = keys
        self._deadline_seconds = deadline_seconds

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        """The service verifies the token; with a key set we do as well, before it is asked. Both
        together have the deadline."""
        with trio.move_on_after(self._deadline_seconds):
            return await self._judge(token, permission, trace)
        raise PortUnavailable("no answer in time")

    async def check_health(self) -> None:
        """One call at the start; what it finds is only logged."""
        problem = ""
        try:
            answer = await self._http.call(
                "GET", f"{self._address}/health", deadline_seconds=HEALTH_SECONDS
            )
        except PortUnavailable as failure:
            problem = str(failure)
        else:
            if answer.body.strip() != HEALTHY:
                problem = f"it answers {answer.status}, not {HEALTHY.decode()!r}"
        if problem:
            log.warning("auth_service_not_healthy", why=problem, env_var="PLUGIN_AUTH_ADDRESS")

    async def _judge(
        self, token: str | None, permission: Permission, trace: Mapping[str, str]
    ) -> Verdict:
        if token is None:
            return Refused(Refusal.MISSING_TOKEN)
        try:
            read = read_token(token)
        except TokenMalformed:
            return _UNAUTHORIZED
        subject = subject_of(read.claims)
        if subject is None:
            return _UNAUTHORIZED
        if self._keys is not None and not await self._keys.verifies(read):
            return _UNAUTHORIZED
        question = {"sub": subject, "resource": permission.resource, "action": permission.action}
        verdict = await self._ask(token, dumps(question).encode(), trace)
        return Granted(subject=subject) if isinstance(verdict, Granted) else verdict

    async def _ask(self, token: str, question: bytes, trace: Mapping[str, str]) -> Verdict:
        answer = await self._http.call(
            "POST",
            f"{self._address}/v1/authorize",
            deadline_seconds=self._deadline_seconds,
            # The bare token: the service takes no scheme.
            headers={**trace, "Content-Type": "application/json", "Authorization": token},
            body=question,
        )
        problem = ""
        try:
            return verdict_of(answer.status, answer.body)
        except AnswerUnreadable as unreadable:
            problem = f"its answer cannot be read: {unreadable}"
        raise PortUnavailable(problem)


@asynccontextmanager
async def open_auth_service(
    address: str,
    *,
    jwks_url: str = "",
    now: UtcNow,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> AsyncGenerator[AuthService, None]:
    """``address`` is the base of its paths; with ``jwks_url`` signatures are verified here too."""
    async with open_http(max_answer_bytes=MAX_ANSWER_BYTES) as http:
        keys = KeySet(http, jwks_url, now=now) if jwks_url else None
        yield AuthService(http, address.rstrip("/"), keys=keys, deadline_seconds=deadline_seconds)
