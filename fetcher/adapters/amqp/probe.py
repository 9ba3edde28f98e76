"""The ``rabbitmq`` entry of readiness (spec configuration 6.6, decisions)."""

from typing import Final

import trio

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.breaker import BreakerState, CircuitBreaker
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Probe, ProbeResult, ProbeStatus

TIMEOUT_SECONDS: Final = 2.0


def rabbitmq_probe(connection: BrokerConnection, breaker: CircuitBreaker) -> Probe:
    """Opens and closes a channel, unless the breaker says that the broker is being left alone.

    A connection that was lost is opened again, so that readiness recovers without any traffic. A
    probe neither counts for the breaker nor takes its one trial.
    """

    async def check() -> ProbeResult:
        state = breaker.state
        if state is BreakerState.OPEN:
            return entry(ProbeStatus.DOWN, state, error="circuit breaker open")
        if state is BreakerState.HALF_OPEN:
            return entry(ProbeStatus.DEGRADED, state, error="circuit breaker half-open")
        started_at = trio.current_time()
        error: str | None = "timeout"
        with trio.move_on_after(TIMEOUT_SECONDS):
            error = await try_channel()
        latency_ms = int((trio.current_time() - started_at) * 1000)
        status = ProbeStatus.UP if error is None else ProbeStatus.DOWN
        return entry(status, state, error=error, latency_ms=latency_ms)

    async def try_channel() -> str | None:
        try:
            await connection.check()
        except PortUnavailable:
            return "rabbitmq connection not healthy"
        return None

    def entry(
        status: ProbeStatus, state: BreakerState, *, error: str | None, latency_ms: int = 0
    ) -> ProbeResult:
        return ProbeResult(
            status=status,
            latency_ms=latency_ms,
            tls=connection.tls,
            error=error,
            breaker_state=state.value,
        )

    return Probe(name="rabbitmq", timeout_seconds=TIMEOUT_SECONDS, check=check)
