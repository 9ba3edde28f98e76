"""The Tenant Manager (spec configuration 11.4): one client a process.

No answer's body is ever logged, cut or not: it holds passwords.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar
from urllib.parse import quote

import structlog
import trio

from fetcher.adapters.breaker import BreakerState, CircuitBreaker
from fetcher.adapters.http_client import HttpAnswer, HttpClient, open_http
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import (
    SERVICE,
    SourcePlace,
    TenantConfig,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantUnknown,
    is_tenant_id,
)
from fetcher.domain.trace_context import current_trace
from fetcher.tenancy import Noted
from fetcher.tenancy.failing_tenants import FailingTenants, OfOneTenant
from fetcher.tenancy.manager_answers import (
    ServiceSources,
    secrets_of_config,
    secrets_of_sources,
    service_sources,
    tenant_config,
)
from fetcher.tenancy.manager_words import Value, Word, active_in, connections_in, status_text
from fetcher.tenancy.remembered import Remembered

log = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 10 * 1024 * 1024
MAX_REMEMBERED: Final = 10_000
"""Tenants' places, and as many sources'."""
LARGE_BYTES: Final = 256 * 1024
"""What is longer is read in a thread."""


class _ShowsNothing(Exception):
    """Carries a word past the breaker, which it leaves as it is."""

    def __init__(self, word: Word) -> None:
        super().__init__()
        self.word = word


class TenantManagerClient:
    """Implements :class:`fetcher.ports.tenants.TenantDirectory`; see :func:`open_tenant_manager`.

    A question has ``timeout_seconds`` in all. It is asked once: another try is the caller's.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        api_key: str,
        broker_module: str,
        timeout_seconds: float,
        cache_seconds: float,
        new_breaker: Callable[[], CircuitBreaker],
        noted: Noted,
        max_remembered: int = MAX_REMEMBERED,
    ) -> None:
        """``new_breaker``: one for all questions, and one of its own for each tenant that the
        manager cannot tell of."""
        self._http = http
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._broker_module = broker_module
        self._timeout_seconds = timeout_seconds
        self._breaker = new_breaker()
        self._failing = FailingTenants(new_breaker, at_most=max_remembered)
        self._noted = noted
        self._last_problem = ""
        self._services: set[str] = set()
        self._configs = Remembered[str, TenantConfig](
            self._ask_config, seconds=cache_seconds, entries=max_remembered
        )
        self._sources = Remembered[tuple[str, str], ServiceSources](
            self._ask_sources, seconds=cache_seconds, entries=max_remembered
        )

    @property
    def is_left_alone(self) -> bool:
        return self._breaker.state is BreakerState.OPEN

    async def active(self, *, within_seconds: float) -> Sequence[str]:
        """As the port says. Who waits for less than a question's own time and gives up says nothing
        against the manager: looks at readiness, which anybody may order, wait for a second."""
        with trio.move_on_after(within_seconds):
            found = await self._ask(
                f"/v1/tenants/active?service={SERVICE}", active_in, seconds=self._timeout_seconds
            )
            if found.strange:
                log.warning("tenants_with_unusable_ids", count=found.strange)
            return found.ids
        raise TenantsUnavailable("failed to execute request: no answer in time")

    async def config(self, tenant_id: str, *, fresh: bool = False) -> TenantConfig:
        _require_id(tenant_id)
        return await self._configs.get(tenant_id, fresh=fresh)

    async def source(self, tenant_id: str, service: str, module: str) -> SourcePlace:
        _require_id(tenant_id)
        self._services.add(service)
        sources = await self._sources.get((tenant_id, service))
        return sources.place(module)

    def forget(self, tenant_id: str) -> None:
        self._configs.forget(tenant_id)
        for service in self._services:
            self._sources.forget((tenant_id, service))

    async def _ask_config(self, tenant_id: str) -> TenantConfig:
        def read(body: bytes) -> TenantConfig:
            return tenant_config(body, tenant_id=tenant_id, broker_module=self._broker_module)

        config = await self._ask_connections(tenant_id, SERVICE, read)
        self._noted([secret for secret in secrets_of_config(config) if secret])
        return config

    async def _ask_sources(self, key: tuple[str, str]) -> ServiceSources:
        tenant_id, service = key

        def read(body: bytes) -> ServiceSources:
            return service_sources(body, tenant_id=tenant_id, service=service)

        sources = await self._ask_connections(tenant_id, service, read)
        self._noted([secret for secret in secrets_of_sources(sources) if secret])
        return sources

    async def _ask_connections(self, tenant_id: str, service: str, read: Callable[[bytes], T]) -> T:
        def read_answer(answer: HttpAnswer) -> Value[T] | Word:
            return connections_in(answer, tenant_id, read)

        of_tenant, of_service = (quote(part, safe="") for part in (tenant_id, service))
        path = f"/v1/tenants/{of_tenant}/associations/{of_service}/connections"
        return await self._ask(
            path, read_answer, seconds=self._timeout_seconds, tenant_id=tenant_id
        )

    async def _ask(
        self,
        path: str,
        read: Callable[[HttpAnswer], Value[T] | Word],
        *,
        seconds: float,
        tenant_id: str = "",
    ) -> T:
        """``tenant_id`` is whom it is about, empty for the list."""
        said: Value[T] | Word | None = None
        problem = ""
        was_admitted = False
        try:
            with self._failing.asking(tenant_id), self._breaker.attempt():
                was_admitted = True
                answer = await self._call(path, seconds)
                if answer.status >= 500:
                    raise self._failure(answer.status, tenant_id)
                said = _if_it_shows_health(await _read(read, answer))
                self._failing.success(tenant_id)
        except _ShowsNothing as shown:
            said = shown.word
        except PortUnavailable as failure:
            problem = str(failure)
        if not was_admitted:
            raise TenantsLeftAlone
        if isinstance(said, Value):
            self._tell("")
            return said.value
        if said is not None:
            self._tell(said.problem)
            raise said.error
        self._tell(problem)
        about = f" for tenant {tenant_id}" if tenant_id else ""
        raise TenantsUnavailable(f"{problem}{about}")

    def _failure(self, status: int, tenant_id: str) -> PortUnavailable | OfOneTenant:
        problem = status_text(status)
        if not tenant_id:
            return PortUnavailable(problem)
        return self._failing.failure(tenant_id, problem)

    async def _call(self, path: str, seconds: float) -> HttpAnswer:
        """The answer, whatever its status. Raise PortUnavailable where there was none."""
        trace = current_trace()
        headers = {
            **(trace.headers() if trace is not None else {}),
            "X-API-Key": self._api_key,
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        problem = ""
        try:
            return await self._http.call(
                "GET", f"{self._url}{path}", deadline_seconds=seconds, headers=headers
            )
        except PortUnavailable as failure:
            problem = f"failed to execute request: {failure}"
        raise PortUnavailable(problem)

    def _tell(self, problem: str) -> None:
        """Once, until another one is met or none is."""
        if problem == self._last_problem:
            return
        self._last_problem = problem
        if problem:
            log.warning("tenant_manager_fails", why=problem)
        else:
            log.info("tenant_manager_answers")


@asynccontextmanager
async def open_tenant_manager(
    url: str,
    *,
    api_key: str,
    broker_module: str,
    timeout_seconds: float,
    cache_seconds: float,
    new_breaker: Callable[[], CircuitBreaker],
    noted: Noted,
) -> AsyncGenerator[TenantManagerClient, None]:
    """Calls nobody yet. ``url`` is the base of its paths; ``broker_module`` is ours there
    (``fetcher-manager``, ``fetcher-worker``). Leaving closes its connections."""
    async with open_http(max_answer_bytes=MAX_ANSWER_BYTES) as http:
        yield TenantManagerClient(
            http,
            url,
            api_key=api_key,
            broker_module=broker_module,
            timeout_seconds=timeout_seconds,
            cache_seconds=cache_seconds,
            new_breaker=new_breaker,
            noted=noted,
        )


def _require_id(tenant_id: str) -> None:
    """Whatever it is, it is in no error's text."""
    if not is_tenant_id(tenant_id):
        raise TenantUnknown("no id that a tenant can have")


async def _read(
    read: Callable[[HttpAnswer], Value[T] | Word], answer: HttpAnswer
) -> Value[T] | Word:
    if len(answer.body) > LARGE_BYTES:
        return await trio.to_thread.run_sync(read, answer)
    return read(answer)


def _if_it_shows_health(said: Value[T] | Word) -> Value[T] | Word:
    if isinstance(said, Word) and not said.shows_health:
        raise _ShowsNothing(said)
    return said
