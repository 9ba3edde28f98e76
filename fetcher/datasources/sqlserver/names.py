"""Which table a requested name means (spec datasources 6.2, 7; spec engine 17.1).

A name travels through the Engine as one text, normalized by the compat layer; on the server it is
a pair. A dot in it may separate a schema or be part of a name: the first pair that exists is meant,
as it is spelt, else the only one that differs in case alone.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from fetcher.compat.names import SQL_SERVER, SourceNames, normalized_table

MAX_IDENTIFIER_CHARS: Final = 128


class AmbiguousName(Exception):
    """Several tables differ from the name in case alone, and none is spelt like it."""


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table as the catalogue spells it."""

    schema: str
    table: str

    def folded(self) -> tuple[str, str]:
        return (self.schema.casefold(), self.table.casefold())


class TableNames:
    """The names of one source. ``schema`` is the connection's own, the default for bare names."""

    def __init__(self, schema: str | None, requested: Iterable[str] | None = None) -> None:
        source = SourceNames(SQL_SERVER, schema or "")
        self.default_schema = source.default_schema
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
        if table.schema == self.default_schema:
            return table.table
        return f"{table.schema}.{table.table}"

    def candidates(self, name: str) -> tuple[TableId, ...]:
        """What a normalized name may mean, in the order of preference, each once.

        The names as they were requested decide. Where several became this one, it means what all of
        them mean: as soon as their readings part, nothing.
        """
        raws = (self._requested or {}).get(name) or frozenset({name})
        readings = [self._readings(raw) for raw in raws]
        common = takewhile(lambda alike: len(set(alike)) == 1, zip(*readings, strict=False))
        return tuple(alike[0] for alike in common)

    def meant(self, name: str, existing: Collection[TableId]) -> TableId | None:
        """The existing table of that name; raise AmbiguousName."""
        candidates = self.candidates(name)
        for candidate in candidates:
            if candidate in existing:
                return candidate
        for candidate in candidates:
            alike = [table for table in existing if table.folded() == candidate.folded()]
            if len(alike) > 1:
                raise AmbiguousName
            if alike:
                return alike[0]
        return None

    def _readings(self, raw: str) -> tuple[TableId, ...]:
        text = raw.strip()
        if len(text) > 3 * MAX_IDENTIFIER_CHARS + 2:
            return (TableId(self.default_schema, text),)
        parts = text.split(".")
        found: list[TableId] = []
        if len(parts) in (2, 3):
            found.append(self._pair(*parts[-2:]))
        found += [
            self._pair(".".join(parts[:split]), ".".join(parts[split:]))
            for split in range(1, len(parts))
        ]
        found.append(TableId(self.default_schema, text))
        return tuple(dict.fromkeys(found))

    def _pair(self, schema: str, table: str) -> TableId:
        default = self.default_schema
        return TableId(default if schema.lower() == default.lower() else schema, table)


def quoted(*names: str) -> str:
    """Identifiers in brackets, joined by dots."""
    return ".".join(f"[{name.replace(']', ']]')}]" for name in names)
