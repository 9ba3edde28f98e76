"""Which table a requested name means where tables lie in schemas (spec datasources 6.2, 7).

A name travels through the Engine as one text, normalized by the compat layer (spec engine 17.1); on
the server it is a pair. A dot in it may separate a schema or be part of a name: the first pair that
exists is meant, the plain reading of ``schema.table`` first.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fetcher.compat.names import SourceNames, normalized_table, shown_table


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table as the catalogue spells it."""

    schema: str
    table: str

    @property
    def folded(self) -> tuple[str, str]:
        """The same for all spellings that differ in case alone."""
        return self.schema.casefold(), self.table.casefold()


class SchemaTableNames(ABC):
    """The names of one source.

    ``schema`` is the connection's own: what a listing lists, and where bare names lie; these lie in
    the type's default schema all the same where ``keeps_default``.
    """

    source_type: ClassVar[str]

    def __init__(
        self,
        schema: str | None,
        requested: Iterable[str] | None = None,
        *,
        keeps_default: bool = False,
    ) -> None:
        listed = SourceNames(self.source_type, schema or "")
        source = SourceNames(self.source_type) if keeps_default else listed
        self.default_schema = source.default_schema
        self.listed_schema = listed.default_schema
        self._requested: Mapping[str, frozenset[str]] | None = None
        if requested is not None:
            grouped: dict[str, set[str]] = {}
            for raw in requested:
                grouped.setdefault(normalized_table(raw, source), set()).add(raw)
            self._requested = {name: frozenset(raws) for name, raws in grouped.items()}

    @property
    def requested(self) -> tuple[str, ...] | None:
        """The normalized names that were asked for; None where nobody asked for any."""
        return None if self._requested is None else tuple(sorted(self._requested))

    def displayed(self, table: TableId) -> str:
        """How a listing names the table."""
        is_bare = table.schema == self.default_schema
        return shown_table(table.table, "" if is_bare else table.schema)

    def candidates(self, name: str) -> tuple[TableId, ...]:
        """What a normalized name may mean: by each name as it was requested that became this one,
        in the order of preference."""
        return tuple(dict.fromkeys(one for raw in self._raws(name) for one in self._readings(raw)))

    def meant(self, name: str, existing: Collection[TableId]) -> tuple[TableId, ...]:
        """The existing table of that name, else those that differ from it in case alone.

        Where several requested names became this one and mean different tables (``a.s.t`` and
        ``s.t``, where ``s.t`` is a table too), all of those; where one means none, none.
        """
        meanings = [self._meaning(raw, existing) for raw in self._raws(name)]
        if not all(meanings):
            return ()
        return tuple(dict.fromkeys(one for meaning in meanings for one in meaning))

    def _raws(self, name: str) -> list[str]:
        return sorted((self._requested or {}).get(name) or (name,))

    def _meaning(self, raw: str, existing: Collection[TableId]) -> tuple[TableId, ...]:
        candidates = self._readings(raw)
        for candidate in candidates:
            if candidate in existing:
                return (candidate,)
        for candidate in candidates:
            alike = tuple(table for table in existing if table.folded == candidate.folded)
            if alike:
                return alike
        return ()

    @abstractmethod
    def _readings(self, raw: str) -> tuple[TableId, ...]:
        """What a name as it was requested may mean, the likeliest first, each once."""
