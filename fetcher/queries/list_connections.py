"""Pages of connections (spec rest-api 8.2, 8.3, 13)."""

from collections.abc import Callable
from dataclasses import replace

import trio

from fetcher.domain.connections import Connection, ConnectionPage, ConnectionQuery
from fetcher.domain.errors import PortError
from fetcher.domain.internal_sources import INTERNAL_SOURCES, InternalSourceMissing
from fetcher.ports import ConnectionRecords, InternalSources


class ListConnections:
    """The internal sources, sorted by name, then the stored connections: one list in pages.

    ``on_unlisted`` is told of an internal source that could not be resolved: the list goes without
    it, and without a failure.
    """

    def __init__(
        self,
        *,
        internal: InternalSources,
        stored: ConnectionRecords,
        on_unlisted: Callable[[str, PortError], None],
    ) -> None:
        self._internal = internal
        self._stored = stored
        self._on_unlisted = on_unlisted

    async def __call__(self, query: ConnectionQuery) -> ConnectionPage:
        """Stored ones by ``created_at``, then id, so that pages neither repeat nor lose one."""
        internal = await self._internal_ones(query)
        page = await self._stored.list_page(replace(query, preceding=len(internal)))
        first = (query.page - 1) * query.limit
        items = (*internal[first : first + query.limit], *page.items)
        return ConnectionPage(items=items[: query.limit], total=page.total + len(internal))

    async def _internal_ones(self, query: ConnectionQuery) -> list[Connection]:
        """None under a product or a metadata filter, nor among the unassigned: they have no
        product to be given."""
        if query.product_name is not None or query.metadata or query.unassigned:
            return []
        found: dict[str, Connection] = {}
        async with trio.open_nursery() as nursery:
            for name in INTERNAL_SOURCES:
                nursery.start_soon(self._look_for, name, found)
        return [found[name] for name in sorted(found) if _is_wanted(found[name], query)]

    async def _look_for(self, name: str, found: dict[str, Connection]) -> None:
        try:
            found[name] = await self._internal.find(name)
        except InternalSourceMissing:
            pass
        except PortError as error:
            self._on_unlisted(name, error)


def _is_wanted(connection: Connection, query: ConnectionQuery) -> bool:
    """Dates do not count: the operator's sources have been there since ever."""
    return (
        query.type in (None, connection.type)
        and query.host in (None, connection.host)
        and query.database_name in (None, connection.database_name)
    )
