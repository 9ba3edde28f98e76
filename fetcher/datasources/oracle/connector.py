"""Oracle as a source of the Engine: one session, one read-only snapshot over all its tables."""

from collections.abc import Callable

import trio

from fetcher.datasources.connecting import DISCOVERY_SECONDS
from fetcher.datasources.oracle.errors import SCHEMA_CHANGED, TIMEOUT
from fetcher.datasources.oracle.names import TableNames
from fetcher.datasources.oracle.query import prepare_table
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.oracle.rows import TableReader
from fetcher.datasources.oracle.schema import read_catalogue, read_snapshot
from fetcher.datasources.oracle.session import CURRENT_USER, Session
from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.targets import Target
from fetcher_engine import SchemaSnapshot, SourceFailure, Stage, StreamRequest


class OracleSource:
    """One service as one request reads it."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: ValueRenderer,
        settings: ReadSettings,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed.

        ``on_refusal`` is told of a read that has no snapshot.
        """
        self._on_refusal = on_refusal
        self._config_name = config_name
        self._target = target
        self._names = names
        self._renderer = renderer
        self._settings = settings

    async def open(self) -> Session:
        return await Session.open(
            self._target(), statement_seconds=self._settings.statement_seconds
        )

    async def rest(self, session: Session) -> None:
        await session.rest()

    async def resume(self, session: Session) -> None:
        await session.resume(statement_seconds=self._settings.statement_seconds)

    async def ping(self, session: Session) -> None:
        await session.rows(CURRENT_USER, (), Stage.SESSION)

    async def discover(self, session: Session) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, the user's own by default."""
        return await read_snapshot(
            session,
            self._names,
            self._config_name,
            include_views=self._settings.include_views,
        )

    async def readers(self, session: Session, request: StreamRequest) -> list[TableReader]:
        """Begin the snapshot and look the tables up in it."""
        if not await session.begin_snapshot():
            self._on_refusal()
        found = None
        with trio.move_on_after(DISCOVERY_SECONDS):
            found = await read_catalogue(
                session,
                self._names,
                request.tables,
                include_views=self._settings.include_views,
            )
        if found is None:
            raise SourceFailure(Stage.SCHEMA, TIMEOUT)
        readers = []
        for name, fields in request.tables.items():
            meant = self._names.meant(name, found, session.user)
            if len(meant) != 1:
                raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
            query = prepare_table(
                name=name,
                table=meant[0],
                columns=found[meant[0]].columns,
                fields=fields,
                filters=request.filters.get(name, {}),
                max_cell_bytes=self._settings.max_cell_bytes,
            )
            readers.append(
                TableReader(
                    session,
                    query,
                    self._renderer,
                    max_batch_bytes=request.max_batch_bytes,
                    max_cell_bytes=self._settings.max_cell_bytes,
                )
            )
        return readers
