"""The ``record_store`` entry of readiness (spec configuration 16, rule 5)."""

from typing import Final

import trio

from fetcher.adapters.sqlite.database import Database
from fetcher.domain.errors import PortError
from fetcher.ports import Probe, ProbeResult, ProbeStatus

TIMEOUT_SECONDS: Final = 2.0
READ_SECONDS: Final = 1.9
"""Less than the probe's whole time, so that it is the probe that words its end."""


def record_store_probe(database: Database) -> Probe:
    """``SELECT 1``, on a connection that reads."""

    async def check() -> ProbeResult:
        started_at = trio.current_time()
        error: str | None = "timeout"
        with trio.move_on_after(READ_SECONDS):
            try:
                await database.read(lambda session: session.row("SELECT 1"))
                error = None
            except PortError:
                error = "record store not readable"
        return ProbeResult(
            status=ProbeStatus.UP if error is None else ProbeStatus.DOWN,
            latency_ms=int((trio.current_time() - started_at) * 1000),
            error=error,
        )

    return Probe(name="record_store", timeout_seconds=TIMEOUT_SECONDS, check=check)
