"""What the one process that owns the data folder does with the records of the one before it."""

from dataclasses import dataclass
from typing import Final

from fetcher.adapters.sqlite.database import Database, Session

_UNDISPATCH: Final = """
    UPDATE job SET dispatched_at = NULL, dispatch_seq = dispatch_seq + 1,
        dispatch_lease_until = NULL
    WHERE status = 'pending' AND (dispatched_at IS NOT NULL OR dispatch_lease_until IS NOT NULL)
"""
_EXPIRE: Final = """
    UPDATE job SET lease_until = :now
    WHERE status = 'processing' AND (lease_until IS NULL OR lease_until > :now)
"""
_DROP_EVENT_LEASES: Final = """
    UPDATE job SET event_lease_until = NULL WHERE event_pending = 1 AND event_lease_until > :now
"""
_DROP_PROBES: Final = """
    UPDATE connection_breaker SET probe_token = NULL, probe_until = NULL
    WHERE probe_token IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """How many records were taken back."""

    undispatched: int
    """Pending jobs whose message lay in the queue of the process that is gone."""
    expired: int
    """Jobs that it worked on: the reaper takes them, and counts a takeover."""
    events: int
    """Terminal events that it was about to publish."""


class RestartRecovery:
    """For the embedded default only: the caller holds the lock of the data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recover(self) -> Recovered:
        """Call once, before any actor starts: nobody else can be alive, so every claim is void."""

        def recover(session: Session) -> Recovered:
            now = {"now": session.now_ms}
            session.change(_DROP_PROBES, {})
            return Recovered(
                undispatched=session.change(_UNDISPATCH, {}),
                expired=session.change(_EXPIRE, now),
                events=session.change(_DROP_EVENT_LEASES, now),
            )

        return await self._database.write(recover)
