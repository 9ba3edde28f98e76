"""When a connection that keeps failing is left alone, and for how long (decision 032).

Pure rules, for stores that read, judge and write a connection's one record in one atomic step.
``now`` is the store's clock. A rule is called again when the record has changed in between.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from fetcher.domain.backoff import full_jitter
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId
from fetcher.domain.times import cut_to_milliseconds

FAILURES_TO_OPEN: Final = 5
FIRST_OPEN_SECONDS: Final = 10.0
"""Where no account is tried: who was restarted shall not be waited for much longer than it took."""
FIRST_OPEN_AFTER_AUTH_SECONDS: Final = 30.0
"""Each further login with a wrong password may be the one that locks the account."""
LONGEST_OPEN_SECONDS: Final = 600.0
PROBE_LEASE_SECONDS: Final = 30.0
"""Longer than a probe may take: after it, the one who probed is taken for dead."""
REMEMBERED_SECONDS: Final = 86_400.0
"""A record that nothing was written to for so long is no record any more."""

AUTH: Final = "auth"
COUNTED_REASONS: Final = frozenset({"refused", "unreachable", "dns", AUTH, "network"})
"""Of failures until a session stands: what the server, the network or the resolver says at once,
and goes on saying until somebody mends it. ``network`` is what the host guard leaves of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDown:
    """One failure to open a session, in safe words."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """What is known of one connection that has failed lately; one that is well has no record.

    ``version`` is the ``updated_at`` of the connection that failed: of a changed connection it says
    nothing. ``failures`` and ``openings`` count those in a row.
    """

    connection_id: ConnectionId
    config_name: str
    version: datetime
    down: SourceDown
    failures: int
    changed_at: datetime
    openings: int = 0
    retry_at: datetime | None = None
    """Open: nobody tries before. None: closed."""
    probe_token: bytes | None = field(default=None, repr=False)
    probe_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.retry_at is not None

    def is_forgotten(self, now: datetime) -> bool:
        return self.changed_at + timedelta(seconds=REMEMBERED_SECONDS) <= now

    @property
    def first_open_seconds(self) -> float:
        """At most; each further opening doubles it."""
        is_of_account = self.down.reason == AUTH
        return FIRST_OPEN_AFTER_AUTH_SECONDS if is_of_account else FIRST_OPEN_SECONDS

    def holds_back(self, connection: Connection) -> bool:
        """Whether this connection, as it now is, is left alone."""
        return self.is_open and self.version == connection.updated_at


BreakerRule: TypeAlias = Callable[[Breaker | None, datetime], Breaker | None]
"""The record that shall stand; the same object leaves it as it is, None takes it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChange:
    """What a rule has met and made; the same object twice where nothing was written."""

    before: Breaker | None
    after: Breaker | None
    at: datetime
    """The store's clock."""

    @property
    def opened(self) -> bool:
        was_open = self.before is not None and self.before.is_open
        return self.after is not None and self.after.is_open and not was_open

    @property
    def closed(self) -> bool:
        is_open = self.after is not None and self.after.is_open
        return self.before is not None and self.before.is_open and not is_open


def failed(connection: Connection, down: SourceDown) -> BreakerRule:
    """One more failure. Of a connection as it was before a change, it says nothing about now."""

    def rule(breaker: Breaker | None, now: datetime) -> Breaker | None:
        if breaker is not None and breaker.version > connection.updated_at:
            return breaker
        if breaker is None or breaker.version < connection.updated_at:
            breaker = _first(connection, down, now)
        if breaker.is_open:
            return breaker
        breaker = replace(breaker, failures=breaker.failures + 1, down=down, changed_at=now)
        return breaker if breaker.failures < FAILURES_TO_OPEN else _opened(breaker, now)

    return rule


def reached(connection: Connection) -> BreakerRule:
    """A session stood: what is known of this connection, or of an earlier form of it, is void."""

    def rule(breaker: Breaker | None, now: datetime) -> Breaker | None:  # noqa: ARG001 - a BreakerRule
        is_newer = breaker is not None and breaker.version > connection.updated_at
        return breaker if is_newer else None

    return rule


def forgotten(breaker: Breaker | None, now: datetime) -> Breaker | None:  # noqa: ARG001 - a BreakerRule
    """A rule: the connection was changed, or is gone."""
    return None


def probed_by(token: bytes, connection: Connection) -> BreakerRule:
    """Take the one probe, where it is time for it and nobody else has it."""

    def rule(breaker: Breaker | None, now: datetime) -> Breaker | None:
        if breaker is None or wait_until(breaker, connection, now) is not None:
            return breaker
        if not breaker.holds_back(connection):
            return breaker
        until = cut_to_milliseconds(now + timedelta(seconds=PROBE_LEASE_SECONDS))
        return replace(breaker, probe_token=token, probe_until=until, changed_at=now)

    return rule


def probe_failed(token: bytes, down: SourceDown) -> BreakerRule:
    """The probe met a failure: left alone for longer, unless the probe is no longer ours."""

    def rule(breaker: Breaker | None, now: datetime) -> Breaker | None:
        if breaker is None or breaker.probe_token != token:
            return breaker
        return _opened(replace(breaker, down=down, changed_at=now), now)

    return rule


def wait_until(breaker: Breaker | None, connection: Connection, now: datetime) -> datetime | None:
    """When the connection may be tried again; None: now."""
    if breaker is None or not breaker.holds_back(connection):
        return None
    times = [time for time in (breaker.retry_at, breaker.probe_until) if time is not None]
    return max((time for time in times if time > now), default=None)


def _first(connection: Connection, down: SourceDown, now: datetime) -> Breaker:
    return Breaker(
        connection_id=connection.id,
        config_name=connection.config_name,
        version=connection.updated_at,
        down=down,
        failures=0,
        changed_at=now,
    )


def _opened(breaker: Breaker, now: datetime) -> Breaker:
    """Half of the time is certain, half is chance: connections to one server part."""
    half_first, half_longest = breaker.first_open_seconds / 2, LONGEST_OPEN_SECONDS / 2
    certain = min(half_first * 2 ** min(breaker.openings, 32), half_longest)
    seconds = certain + full_jitter(
        breaker.openings, base_seconds=half_first, cap_seconds=half_longest
    )
    return replace(
        breaker,
        openings=breaker.openings + 1,
        retry_at=cut_to_milliseconds(now + timedelta(seconds=seconds)),
        probe_token=None,
        probe_until=None,
    )
