"""May a job open its sources now? And what its attempt says of them (decision 032)."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import trio

from fetcher.commands.connection_test import OPEN_SECONDS
from fetcher.commands.recover_connection import BreakerLog, RecoverConnection
from fetcher.domain import breakers as rules
from fetcher.domain.breakers import Breaker, BreakerChange, SourceDown
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortError
from fetcher.domain.jobs import JobOptions
from fetcher.ports import ConnectionBreakers, SourceEngines
from fetcher_engine import EngineError, Stage, TenantContext

_OPENING: Final = (Stage.DNS, Stage.TCP, Stage.TLS, Stage.AUTH, Stage.SESSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWait:
    """The connection that is down, and until when it is left alone; times are the store's."""

    config_name: str
    down: SourceDown
    until: datetime
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLook:
    """What the breakers say before sources are opened."""

    wait: SourceWait | None = None
    """None: all may be opened."""
    failed_lately: Sequence[Connection] = ()
    """Reaching one of these is news; all of them where their records could not be read."""


class SourceBreakers:
    """Asked before a job opens its sources, told of what it met.

    A record store that does not answer holds no job back: the breaker saves work, it guards
    nothing. No method raises a PortError.
    """

    def __init__(
        self,
        *,
        breakers: ConnectionBreakers,
        recover: RecoverConnection,
        sources: SourceEngines,
        log: BreakerLog,
    ) -> None:
        self._breakers = breakers
        self._recover = recover
        self._sources = sources
        self._log = log

    async def look(self, connections: Sequence[Connection], *, tenant: TenantContext) -> SourceLook:
        """May they be opened? One that has been left alone long enough is probed here."""
        try:
            known = await self._breakers.find([connection.id for connection in connections])
            for connection in connections:
                breaker = known.get(connection.id)
                if breaker is not None and breaker.holds_back(connection):
                    wait = await self._try(connection, tenant)
                    if wait is not None:
                        return SourceLook(wait=wait)
        except PortError as failure:
            self._log.failed(failure)
            return SourceLook(failed_lately=connections)
        return SourceLook(failed_lately=[each for each in connections if each.id in known])

    async def note_reached(self, connections: Sequence[Connection]) -> None:
        """A session to each of them stood."""
        if not connections:
            return
        try:
            known = await self._breakers.find([connection.id for connection in connections])
            for connection in connections:
                if connection.id in known:
                    await self._close(connection)
        except PortError as failure:
            self._log.failed(failure)

    async def note_failure(self, connections: Sequence[Connection], error: EngineError) -> None:
        """What a failure says of the connection that it names: down, reached, or nothing."""
        if error.failures:
            # the schema of each source was read and compared
            await self.note_reached(connections)
            return
        failed = [each for each in connections if each.config_name == error.source]
        if not failed or error.stage is None:
            return
        if error.stage not in _OPENING:
            await self.note_reached(failed)
        elif error.reason in rules.COUNTED_REASONS:
            try:
                await self._count(failed[0], _down(error))
            except PortError as failure:
                self._log.failed(failure)

    async def _try(self, connection: Connection, tenant: TenantContext) -> SourceWait | None:
        token = secrets.token_bytes(16)
        change = await self._breakers.change(connection.id, rules.probed_by(token, connection))
        breaker = change.after
        if breaker is None or not breaker.holds_back(connection):
            return None
        if breaker.probe_token == token:
            down = await self._probe(connection, tenant)
            if down is None:
                await self._close(connection)
                return None
            change = await self._breakers.change(connection.id, rules.probe_failed(token, down))
            self._log.changed(change)
        return _wait(connection, change)

    async def _probe(self, connection: Connection, tenant: TenantContext) -> SourceDown | None:
        """Log in anew; None where that went well."""
        engine = self._sources.engine_for([connection], JobOptions())
        with trio.move_on_after(OPEN_SECONDS):
            try:
                await engine.test_connection(tenant, connection.config_name)
            except EngineError as error:
                return _down(error)
            return None
        return SourceDown(stage=Stage.SESSION.value, reason="timeout")

    async def _close(self, connection: Connection) -> None:
        rule = rules.reached(connection)
        await self._recover.by(rule, connection.id, connection.config_name)

    async def _count(self, connection: Connection, down: SourceDown) -> None:
        self._log.changed(
            await self._breakers.change(connection.id, rules.failed(connection, down))
        )


def _wait(connection: Connection, change: BreakerChange) -> SourceWait | None:
    breaker: Breaker | None = change.after
    until = rules.wait_until(breaker, connection, change.at)
    if breaker is None or until is None:
        return None
    return SourceWait(
        config_name=connection.config_name, down=breaker.down, until=until, asked_at=change.at
    )


def _down(error: EngineError) -> SourceDown:
    stage = error.stage or Stage.SESSION
    return SourceDown(stage=stage.value, reason=error.reason or "unknown")
