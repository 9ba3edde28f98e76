"""Are a job's databases there? Asked before the job is stored (design section 4, step 1)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime

import trio

from fetcher.domain.connections import Connection
from fetcher.domain.errors import HOST_REFUSED, FetcherError, ForbiddenHost, PortError
from fetcher.domain.ids import ConnectionId
from fetcher.domain.jobs import JobOptions
from fetcher.domain.remedies import remedy
from fetcher.domain.tls_modes import refuse_stored_tls_mode
from fetcher.ports import ConnectionBreakers, SourceEngines
from fetcher_engine import Engine, EngineError, TenantContext

AT_ONCE = 4
TOTAL_SECONDS = 15.0
REMEMBERED_SECONDS = 60.0
REMEMBERED_CONNECTIONS = 10_000


class Preflight:
    """Tests connections side by side and remembers for a minute those that were well.

    What is remembered is bound to ``updated_at``: a changed connection is tested again. One that
    is left alone (decision 032) is not tested: its jobs wait, and callers who ask again and again
    do not lock its account.
    """

    def __init__(self, sources: SourceEngines, breakers: ConnectionBreakers) -> None:
        self._sources = sources
        self._breakers = breakers
        self._well_since: OrderedDict[tuple[ConnectionId, datetime], float] = OrderedDict()

    async def check(self, connections: Sequence[Connection], *, tenant: TenantContext) -> bool:
        """Whether any had to be tested, which takes up to TOTAL_SECONDS.

        Raise ``FET-1040`` for the first by name that is down, or was not reached in time.
        Before that, ``FET-0413`` and ``FET-0414`` for one that must not be opened as it is."""
        untested = [c for c in connections if not self._was_well(c)]
        for connection in untested:
            refuse_stored_tls_mode(connection)
        untested = await self._not_left_alone(untested)
        if not untested:
            return False
        engine = self._sources.engine_for(untested, JobOptions())
        places = trio.Semaphore(AT_ONCE)
        outcomes: dict[ConnectionId, EngineError | None] = {}
        with trio.move_on_after(TOTAL_SECONDS):
            async with trio.open_nursery() as nursery:
                for connection in untested:
                    nursery.start_soon(_test, engine, connection, tenant, places, outcomes)
        for connection in untested:
            if connection.id in outcomes and outcomes[connection.id] is None:
                self._remember(connection)
        if any(error is not None and error.reason == HOST_REFUSED for error in outcomes.values()):
            raise ForbiddenHost
        _refuse_first_down(untested, outcomes)
        return True

    async def _not_left_alone(self, connections: Sequence[Connection]) -> list[Connection]:
        """All of them where the breakers cannot be asked: they save work, they guard nothing."""
        if not connections:
            return []
        try:
            known = await self._breakers.find([connection.id for connection in connections])
        except PortError:
            return list(connections)
        return [c for c in connections if c.id not in known or not known[c.id].holds_back(c)]

    def _was_well(self, connection: Connection) -> bool:
        since = self._well_since.get((connection.id, connection.updated_at))
        return since is not None and trio.current_time() - since < REMEMBERED_SECONDS

    def _remember(self, connection: Connection) -> None:
        key = (connection.id, connection.updated_at)
        self._well_since[key] = trio.current_time()
        self._well_since.move_to_end(key)
        if len(self._well_since) > REMEMBERED_CONNECTIONS:
            self._well_since.popitem(last=False)


async def _test(
    engine: Engine,
    connection: Connection,
    tenant: TenantContext,
    places: trio.Semaphore,
    outcomes: dict[ConnectionId, EngineError | None],
) -> None:
    async with places:
        try:
            await engine.test_connection(tenant, connection.config_name)
        except EngineError as error:
            outcomes[connection.id] = error
        else:
            outcomes[connection.id] = None


def _refuse_first_down(
    tested: Sequence[Connection], outcomes: Mapping[ConnectionId, EngineError | None]
) -> None:
    for connection in sorted(tested, key=lambda c: c.config_name):
        if connection.id in outcomes and outcomes[connection.id] is None:
            continue
        error = outcomes.get(connection.id)
        stage = str(error.stage) if error is not None and error.stage is not None else None
        reason = error.reason if error is not None else "timeout"
        told = {"source": connection.config_name, "stage": stage, "reason": reason}
        raise FetcherError(
            "FET-1040",
            "Connection Down",
            f"the data source {connection.config_name} could not be reached: "
            + remedy(reason, stage=stage),
            details={name: text for name, text in told.items() if text},
        )
