"""The ``mongodb`` entry of readiness (spec configuration 6.6)."""

from typing import Final

import pymongo
import trio
from pymongo.errors import OperationFailure, PyMongoError

from fetcher.adapters.mongo.failures import DRIVER_FAILURES
from fetcher.adapters.mongo.server import MongoServer
from fetcher.bridge import run_asyncio
from fetcher.domain.probe_text import safe_error_text
from fetcher.ports import Probe, ProbeResult, ProbeStatus

TIMEOUT_SECONDS: Final = 2.0
PING_SECONDS: Final = 1.9
"""Less than the probe's whole time, so that it is the probe that words its end."""

DRIVER_SECONDS: Final = 6.0
"""More than the driver's round trips, which CONNECT_MS bounds: a command whose deadline is nearer
than the quickest of the last ones is refused unsent. After a freeze of the server those are seconds
long, and a probe with its own deadline said ``timeout`` until the next measurement, at once."""


def mongodb_probe(server: MongoServer, *, tls: bool) -> Probe:
    """Pings, every time; needs neither the indexes nor the clock."""

    async def ping() -> None:
        with pymongo.timeout(DRIVER_SECONDS):
            await server.ping()

    async def check() -> ProbeResult:
        started_at = trio.current_time()
        error: str | None = "timeout"
        with trio.move_on_after(PING_SECONDS):
            error = await try_ping()
        return ProbeResult(
            status=ProbeStatus.UP if error is None else ProbeStatus.DOWN,
            latency_ms=int((trio.current_time() - started_at) * 1000),
            tls=tls,
            error=error,
        )

    async def try_ping() -> str | None:
        try:
            await run_asyncio(ping)
        except DRIVER_FAILURES as error:
            return _words(error)
        return None

    return Probe(name="mongodb", timeout_seconds=TIMEOUT_SECONDS, check=check)


def _words(error: BaseException) -> str:
    if isinstance(error, PyMongoError) and error.timeout:
        return "timeout"
    text = str(error)
    if isinstance(error, OperationFailure) and error.details:
        # The exception's own text goes on with the server's whole answer.
        text = str(error.details.get("errmsg") or text)
    return safe_error_text(text) or type(error).__name__
