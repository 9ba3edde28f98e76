"""What readiness says of a Redis: ``redis`` (spec configuration 6.6, decisions), and that of
tenants' events."""

from typing import Final

import trio
from redis.asyncio import Redis

from fetcher.adapters.redis.failures import DRIVER_FAILURES
from fetcher.bridge import run_asyncio
from fetcher.domain.probe_text import safe_error_text
from fetcher.ports import Probe, ProbeResult, ProbeStatus

TIMEOUT_SECONDS: Final = 1.0
PING_SECONDS: Final = 0.9
"""Less than the probe's whole time, so that it is the probe that words its end."""


def redis_probe(
    client: Redis,
    *,
    tls: bool,
    name: str = "redis",
    meaning: str | None = "serving from process memory",
) -> Probe:
    """Pings by a client that nothing else uses, whatever the breaker of the others says.

    ``meaning`` is said where it is down.
    """

    async def ping() -> str | None:
        try:
            await run_asyncio(client.execute_command, "PING")
        except DRIVER_FAILURES as error:
            return safe_error_text(str(error)) or type(error).__name__
        return None

    async def check() -> ProbeResult:
        started_at = trio.current_time()
        error: str | None = "timeout"
        with trio.move_on_after(PING_SECONDS):
            error = await ping()
        return ProbeResult(
            status=ProbeStatus.UP if error is None else ProbeStatus.DOWN,
            latency_ms=int((trio.current_time() - started_at) * 1000),
            tls=tls,
            error=error,
            reason=None if error is None else meaning,
        )

    return Probe(name=name, timeout_seconds=TIMEOUT_SECONDS, check=check)
