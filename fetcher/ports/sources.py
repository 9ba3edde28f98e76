"""Sources, and what stands around an operation: probes, limits, secrets, access."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from fetcher.domain.access import Permission, Verdict
from fetcher.domain.connections import (
    Connection,
)
from fetcher.domain.ids import ConnectionId
from fetcher.domain.jobs import Filters, JobOptions, MappedFields
from fetcher_engine import Engine, TenantContext

UtcNow: TypeAlias = Callable[[], datetime]
"""The wall clock, injected: an aware time in UTC."""


class ProbeStatus(StrEnum):
    UP = "up"
    DOWN = "down"
    DEGRADED = "degraded"
    SKIPPED = "skipped"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One entry of ``/readyz`` (spec configuration 6.1). Texts are already safe to show."""

    status: ProbeStatus
    latency_ms: int = 0
    tls: bool | None = None
    error: str | None = None
    reason: str | None = None
    breaker_state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One dependency's check. ``check`` raises nothing but cancellation."""

    name: str
    timeout_seconds: float
    check: Callable[[], Awaitable[ProbeResult]]


class TestLimiter(Protocol):
    """10 connection tests a minute a connection (spec rest-api 8.7)."""

    async def take(self, key: str) -> float:
        """Seconds to wait: 0 means taken."""
        ...


class ForgetSchemas(Protocol):
    """Drops what is remembered of one source's schema. It raises nothing but cancellation: a
    schema that could not be dropped ends by its time to live."""

    async def __call__(self, tenant: TenantContext, config_name: str) -> None: ...


class ConnectionRecovery(Protocol):
    """Told that a connection is well, was changed or is gone: jobs that wait for it are due now.
    It raises nothing but cancellation: they are looked at again when their wait is over."""

    async def __call__(self, connection_id: ConnectionId, config_name: str) -> None: ...


class PasswordCipher(Protocol):
    """Stored passwords (spec worker-and-events 5.1)."""

    @property
    def key_version(self) -> str: ...

    def encrypt(self, password: str) -> str: ...

    def decrypt(self, stored: str, key_version: str) -> str: ...


class SourceEngines(Protocol):
    """The Engine over a request's connections: one per request, cheap, bound to these records."""

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: MappedFields | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        """``requested`` decides which schemas discovery reads (spec engine 17.4); a source that
        has its schema from a sample also looks for the fields of ``filters``."""
        ...


class Authorizer(Protocol):
    """Judges who may do what. It keeps no token and remembers no verdict.

    ``relays``: whether a verdict may be a refusal in somebody else's words.
    """

    relays: bool

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        """``token`` as it was sent, None where none was; ``trace`` are W3C trace headers.

        Raise PortUnavailable where no verdict could be had: the caller is not let in.
        """
        ...
