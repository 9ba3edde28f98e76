"""The ``rabbitmq`` entry of readiness (spec configuration 6.6, decisions)."""

from dataclasses import dataclass
from typing import Final

import structlog
import trio
from aiormq import Channel

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import NOT_FOUND, refusal_of
from fetcher.adapters.breaker import BreakerState, CircuitBreaker
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Probe, ProbeResult, ProbeStatus

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS: Final = 2.0
TRY_SECONDS: Final = 1.9
"""Less than the probe's whole time, so that it is the probe that words its end."""
BLOCKED: Final = "the broker is short of memory or disk and takes no messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededObjects:
    """What must lie on the broker: without queue and events exchange nothing works."""

    work_queue: str
    events_exchange: str | None = None
    dead_letter_exchange: str | None = None
    """None: this process rejects nothing, or is not asked."""


def rabbitmq_probe(
    connection: BrokerConnection, breaker: CircuitBreaker, needed: NeededObjects
) -> Probe:
    """Looks for the objects on a channel of its own, unless the breaker says that the broker is
    being left alone. One that is missing is named.

    A connection that was lost is opened again, so that readiness recovers without any traffic. A
    probe neither counts for the breaker nor takes its one trial. Without its dead letter exchange a
    worker goes on until it has something to reject: that is told and does not decide.
    """

    unhealthy = _Unhealthy()
    seen: list[_Missing] = []
    """What the last look missed: it says why the breaker is not closed."""

    async def check() -> ProbeResult:
        state = breaker.state
        known = seen[0].text if seen else None
        if state is BreakerState.OPEN:
            return entry(ProbeStatus.DOWN, state, error="circuit breaker open", reason=known)
        if state is BreakerState.HALF_OPEN:
            half_open = "circuit breaker half-open"
            return entry(ProbeStatus.DEGRADED, state, error=half_open, reason=known)
        if connection.is_blocked:
            return entry(ProbeStatus.DEGRADED, state, error="connection blocked", reason=BLOCKED)
        started_at = trio.current_time()
        error: str | None = "timeout"
        reason: str | None = None
        with trio.move_on_after(TRY_SECONDS) as scope:
            error, reason = await try_channel()
        if scope.cancelled_caught:
            unhealthy.tell(str(connection.silence()))
        latency_ms = int((trio.current_time() - started_at) * 1000)
        status = ProbeStatus.UP if error is None else ProbeStatus.DOWN
        return entry(status, state, error=error, reason=reason, latency_ms=latency_ms)

    async def try_channel() -> tuple[str | None, str | None]:
        async def look(channel: Channel) -> None:
            seen[:] = await _missing(channel, needed)

        try:
            await connection.check(look)
        except PortUnavailable as failure:
            unhealthy.tell(str(failure))
            return "rabbitmq connection not healthy", None
        unhealthy.forget()
        if not seen:
            return None, None
        return (seen[0].text, None) if seen[0].decides else (None, seen[0].text)

    def entry(
        status: ProbeStatus,
        state: BreakerState,
        *,
        error: str | None,
        reason: str | None = None,
        latency_ms: int = 0,
    ) -> ProbeResult:
        return ProbeResult(
            status=status,
            latency_ms=latency_ms,
            tls=connection.tls,
            error=error,
            reason=reason,
            breaker_state=state.value,
        )

    return Probe(name="rabbitmq", timeout_seconds=TIMEOUT_SECONDS, check=check)


class _Unhealthy:
    """The log says where and why, once for each reason in a row: readiness has fixed texts."""

    def __init__(self) -> None:
        self._told: str | None = None

    def tell(self, why: str) -> None:
        if why != self._told:
            log.warning("rabbitmq_not_healthy", why=why)
        self._told = why

    def forget(self) -> None:
        self._told = None


@dataclass(frozen=True, slots=True)
class _Missing:
    text: str
    decides: bool = True


async def _missing(channel: Channel, needed: NeededObjects) -> list[_Missing]:
    """The first object that is not there, if any. Runs on the asyncio side.

    A refusal closes the channel, so that nothing more is asked after it. An object that we may not
    look at counts as there: whoever uses it hears of that.
    """
    queue, events, dead = needed.work_queue, needed.events_exchange, needed.dead_letter_exchange
    refusal = await refusal_of(channel.queue_declare(queue, passive=True))
    missing = _Missing(f"queue {queue} is missing on the broker")
    if refusal is None and events is not None:
        refusal = await refusal_of(channel.exchange_declare(events, passive=True))
        missing = _Missing(f"exchange {events} is missing on the broker")
    if refusal is None and dead is not None:
        refusal = await refusal_of(channel.exchange_declare(dead, passive=True))
        text = f"exchange {dead} is missing on the broker: what is rejected has nowhere to go"
        missing = _Missing(text, decides=False)
    return [missing] if refusal is not None and refusal.code == NOT_FOUND else []
