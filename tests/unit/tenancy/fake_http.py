"""The Tenant Manager's HTTP as a script, on trio's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast

import trio

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.http_client import HttpAnswer, HttpClient
from fetcher.domain.errors import PortUnavailable
from fetcher.tenancy.manager_client import TenantManagerClient

URL: Final = "https://tm.test/base"
TIMEOUT_SECONDS: Final = 30.0
CACHE_SECONDS: Final = 120.0


@dataclass
class FakeHttp:
    """Answers with what is set now, ``delay`` seconds later; ``away`` is nobody there."""

    status: int = 200
    body: bytes = b"[]"
    away: bool = False
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    open_now: int = 0
    open_most: int = 0

    async def call(
        self, method: str, url: str, *, deadline_seconds: float, headers: Mapping[str, str]
    ) -> HttpAnswer:
        assert method == "GET"
        self.asked.append(url.removeprefix(URL))
        self.headers = headers
        self.open_now += 1
        self.open_most = max(self.open_most, self.open_now)
        try:
            with trio.move_on_after(deadline_seconds):
                await trio.sleep(self.delay)
                if self.away:
                    raise PortUnavailable("cannot be reached")
                return HttpAnswer(status=self.status, body=self.body)
            raise PortUnavailable("no answer in time")
        finally:
            self.open_now -= 1

    def answers(self, status: int, body: bytes = b"") -> None:
        self.status, self.body, self.away = status, body, False


def a_client(
    http: FakeHttp,
    *,
    noted: list[str] | None = None,
    url: str = URL,
    broker_module: str = "fetcher-worker",
    max_remembered: int = 100,
) -> TenantManagerClient:
    told = noted if noted is not None else []
    return TenantManagerClient(
        cast("HttpClient", http),
        url,
        api_key="canary-of-the-key",
        broker_module=broker_module,
        timeout_seconds=TIMEOUT_SECONDS,
        cache_seconds=CACHE_SECONDS,
        new_breaker=partial(CircuitBreaker, failures_to_open=5, open_seconds=30.0),
        noted=told.extend,
        max_remembered=max_remembered,
    )
