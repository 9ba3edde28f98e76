"""Which name of a source a request means: the exact one, else the only one that ignores case."""

from collections import defaultdict
from collections.abc import Iterable

from fetcher_engine.schema import SchemaSnapshot, TableSnapshot


class AmbiguousName(Exception):
    """Several names differ from the wanted one in case alone, and none is the same."""

    def __init__(self, candidates: Iterable[str]) -> None:
        super().__init__("several names differ from the wanted one in case alone")
        self.candidates = tuple(sorted(candidates))


class NameIndex:
    """Names of one kind; each must be asked for exactly unless the source ``ignores_case``."""

    def __init__(self, names: Iterable[str], *, ignores_case: bool) -> None:
        self._names = frozenset(names)
        self._folded: defaultdict[str, list[str]] = defaultdict(list)
        if ignores_case:
            for name in self._names:
                self._folded[name.casefold()].append(name)

    def find(self, wanted: str) -> str | None:
        """The name in the source's own spelling, None where there is none; raise AmbiguousName."""
        if wanted in self._names:
            return wanted
        alike = self._folded.get(wanted.casefold(), [])
        if len(alike) > 1:
            raise AmbiguousName(alike)
        return alike[0] if alike else None


class TableIndex:
    """The tables of a snapshot by the names that requests may use. The last of one name counts."""

    def __init__(self, snapshot: SchemaSnapshot) -> None:
        self._tables = {table.name: table for table in snapshot.tables}
        self._names = NameIndex(self._tables, ignores_case=snapshot.ignores_case)
        self._ambiguous = {each.name: each.candidates for each in snapshot.ambiguous}

    def find(self, wanted: str) -> TableSnapshot | None:
        """Raise AmbiguousName."""
        if wanted in self._ambiguous:
            raise AmbiguousName(self._ambiguous[wanted])
        name = self._names.find(wanted)
        return None if name is None else self._tables[name]


class FieldIndex:
    """The fields of a table by the names that requests may use."""

    def __init__(self, table: TableSnapshot, *, ignores_case: bool) -> None:
        self._table = table
        self._names = NameIndex(table.fields, ignores_case=ignores_case)

    def find(self, wanted: str) -> str | None:
        """A field, or a parent of flattened paths, as the source spells it; raise AmbiguousName."""
        return wanted if self._table.has_field(wanted) else self._names.find(wanted)
