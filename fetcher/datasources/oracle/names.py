"""What a requested name means in the catalogue (spec datasources 6.2, 7; spec engine 17.1).

A request's names reach the Engine in upper case; how they were written decides where the catalogue
has spellings that differ in case alone. A name is looked for as it was written, then in upper case,
as Oracle reads a bare name, then ignoring case; where several would do then, it is ambiguous.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fetcher.compat.names import (
    ORACLE,
    SourceNames,
    normalized_table,
    shown_table,
    table_readings,
    upper_case,
)
from fetcher.domain.jobs import MappedFields

_ORACLE: Final = SourceNames(ORACLE)


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table as the catalogue spells it."""

    owner: str
    table: str


class TableNames:
    """The names of one source.

    ``schema`` is the connection's own: what a listing lists, and where bare names lie; these lie in
    the user's own schema all the same where ``keeps_default``. ``requested`` are fields by table,
    as they were written; None where nobody asked for any.
    """

    def __init__(
        self,
        schema: str | None,
        requested: Mapping[str, Iterable[str]] | None = None,
        *,
        keeps_default: bool = False,
    ) -> None:
        self._schema = (schema or "").strip()
        self._keeps_default = keeps_default
        self._written: dict[str, set[str]] | None = None
        self._written_fields: dict[str, set[str]] = {}
        if requested is not None:
            self._written = {}
            for raw, fields in requested.items():
                name = normalized_table(raw, _ORACLE)
                self._written.setdefault(name, set()).add(raw)
                self._written_fields.setdefault(name, set()).update(fields)

    @property
    def requested(self) -> tuple[str, ...] | None:
        """The normalized names that were asked for; None where nobody asked for any."""
        return None if self._written is None else tuple(sorted(self._written))

    def default_owner(self, user: str) -> str:
        """Where bare names lie: the connection's schema, else the session's ``user``."""
        return user if self._keeps_default else self._schema or user

    def owners(self, user: str, names: Iterable[str] | None) -> tuple[str, ...]:
        """The owners whose tables the names may mean; those of a listing for None.

        Blank ones are left out, so that binds are numbered without holes.
        """
        wanted = {self._schema or user if names is None else self.default_owner(user)}
        for name in names or ():
            for raw in self._raws(name):
                wanted.update(reading.schema for reading in table_readings(raw))
        stripped = {owner.strip() for owner in wanted} - {""}
        return tuple(sorted(stripped | {upper_case(owner) for owner in stripped}))

    def displayed(self, table: TableId, user: str) -> str:
        """How a listing names the table."""
        is_bare = upper_case(table.owner) == upper_case(self.default_owner(user))
        return shown_table(table.table, "" if is_bare else table.owner)

    def meant(self, name: str, tables: Iterable[TableId], user: str) -> tuple[TableId, ...]:
        """What a normalized name means: one table; several where it is ambiguous."""
        known = list(tables)
        # several spellings may have become this one name: they must agree, or it is ambiguous
        found = [self._meaning(raw, known, user) for raw in self._raws(name)]
        return tuple(sorted({one for meaning in found for one in meaning})) if all(found) else ()

    def told(self, name: str, columns: Iterable[str]) -> frozenset[str]:
        """The columns that a snapshot shows to whoever asked for the table by this name.

        A request's fields reach the Engine in upper case. Where columns differ in case alone, one
        that was written exactly is the one that is meant; two of them could not both be read.
        """
        alike: dict[str, set[str]] = {}
        for column in columns:
            alike.setdefault(upper_case(column), set()).add(column)
        written = self._written_fields.get(name, set())
        shown: set[str] = set()
        for spellings in alike.values():
            exact = spellings & written
            if len(spellings) == 1 or not exact:
                shown |= spellings
            elif len(exact) == 1:
                shown |= exact
        return frozenset(shown)

    def _raws(self, name: str) -> Iterable[str]:
        return (self._written or {}).get(name) or (name,)

    def _meaning(self, raw: str, tables: list[TableId], user: str) -> tuple[TableId, ...]:
        for owner, table in self._readings(raw, user):
            owners = _alike({each.owner for each in tables}, owner)
            found = _alike({each.table for each in tables if each.owner in owners}, table)
            meant = [each for each in tables if each.owner in owners and each.table in found]
            if meant:
                return tuple(sorted(meant))
        return ()

    def _readings(self, raw: str, user: str) -> Iterable[tuple[str, str]]:
        """Owner and table, the likeliest first: a dot may be part of either."""
        for reading in table_readings(raw):
            yield reading.schema.strip() or self.default_owner(user), reading.table


def _alike(known: Iterable[str], wanted: str) -> frozenset[str]:
    """Exactly, else as Oracle reads a bare name, else all that differ in case alone."""
    upper = upper_case(wanted)
    alike = frozenset(each for each in known if upper_case(each) == upper)
    for exact in (wanted, upper):
        if exact in alike:
            return frozenset({exact})
    return alike


def requested_fields(
    requested: MappedFields | None, config_name: str
) -> Mapping[str, Iterable[str]] | None:
    """One source's fields by table as they were written; None where a request names none."""
    if requested is None or config_name not in requested:
        return None
    return requested[config_name]


def is_quotable(name: str) -> bool:
    """Oracle's quoted names hold neither a quotation mark nor NUL, and no escape exists."""
    return bool(name) and '"' not in name and "\0" not in name


def quoted(name: str) -> str:
    """The name between quotation marks; raise ValueError for one that has them."""
    if not is_quotable(name):
        message = "a name that cannot be quoted"
        raise ValueError(message)
    return f'"{name}"'
