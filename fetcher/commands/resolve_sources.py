"""From the config names of a request to connections (spec datasources 14)."""

from collections.abc import Sequence

from fetcher.domain.connections import Connection
from fetcher.domain.internal_sources import INTERNAL_SOURCES, InternalSourceMissing
from fetcher.ports import ConnectionRecords, InternalSources


class ResolveSources:
    """A reserved name is always internal, whatever is stored under it."""

    def __init__(self, *, internal: InternalSources, stored: ConnectionRecords) -> None:
        self._internal = internal
        self._stored = stored

    async def __call__(self, names: Sequence[str]) -> list[Connection]:
        """By config name; stored ones that do not exist are missing, one look-up for all.

        Raise InternalSourceMissing where an internal one is not configured: then nothing is looked
        up.
        """
        internal = [await self._internal.find(name) for name in names if name in INTERNAL_SOURCES]
        return await self._with_stored(internal, names)

    async def configured(self, names: Sequence[str]) -> list[Connection]:
        """The same, but an internal one that is not configured is missing like any other."""
        internal = []
        for name in names:
            if name in INTERNAL_SOURCES:
                try:
                    internal.append(await self._internal.find(name))
                except InternalSourceMissing:
                    continue
        return await self._with_stored(internal, names)

    async def _with_stored(
        self, internal: Sequence[Connection], names: Sequence[str]
    ) -> list[Connection]:
        others = [name for name in names if name not in INTERNAL_SOURCES]
        stored = await self._stored.find_by_config_names(others) if others else []
        return sorted([*internal, *stored], key=lambda connection: connection.config_name)
