"""A connection is well again, was changed, or is gone: nobody waits for it any longer."""

from collections.abc import Callable
from typing import Final, Protocol

from fetcher.domain.breakers import BreakerChange, BreakerRule, forgotten
from fetcher.domain.errors import PortError
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.ports import ConnectionBreakers, DispatchOutbox

HINTED: Final = 100
"""Of the jobs that are woken, so many are dispatched at once: the sweep finds the others."""


class BreakerLog(Protocol):
    """Told of what changes, and of a record store that does not answer."""

    def changed(self, change: BreakerChange) -> None: ...

    def failed(self, failure: PortError) -> None: ...


class RecoverConnection:
    """Closes the breaker and makes the jobs due that wait for the connection.

    Implements :class:`fetcher.ports.ConnectionRecovery`: where the record store does not answer, a
    changed connection is tried all the same, and each job is looked at again when it is due.
    """

    def __init__(
        self,
        *,
        breakers: ConnectionBreakers,
        dispatch: DispatchOutbox,
        hint: Callable[[JobId], None],
        log: BreakerLog,
    ) -> None:
        self._breakers = breakers
        self._dispatch = dispatch
        self._hint = hint
        self._log = log

    async def __call__(self, connection_id: ConnectionId, config_name: str) -> None:
        try:
            self._log.changed(await self._breakers.change(connection_id, forgotten))
            await self._wake(config_name)
        except PortError as failure:
            self._log.failed(failure)

    async def by(self, rule: BreakerRule, connection_id: ConnectionId, config_name: str) -> None:
        """Let ``rule`` judge the breaker; wake the jobs where that closes it. Raise PortError."""
        change = await self._breakers.change(connection_id, rule)
        self._log.changed(change)
        if change.closed:
            await self._wake(config_name)

    async def _wake(self, config_name: str) -> None:
        for job_id in await self._dispatch.wake_parked(config_name, told=HINTED):
            self._hint(job_id)
