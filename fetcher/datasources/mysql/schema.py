"""The catalogue: the tables of the connected database with their columns, in a few statements.

A statement a kind of fact, whatever the number of tables: 5 000 take about half a second on
MariaDB. Base tables, and views where the operator wants
them; no sequences and no system-versioned tables (spec datasources 6.3).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import MYSQL, shown_table
from fetcher.datasources.mysql.link import Row
from fetcher.datasources.mysql.names import meant_tables
from fetcher.datasources.mysql.session import Session
from fetcher.datasources.mysql.types import text_literal
from fetcher.datasources.row_estimates import row_estimate
from fetcher.datasources.threads import ThreadKind, in_thread
from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, Stage, TableSnapshot

_PARSERS: Final = ThreadKind(2)
"""Catalogues of thousands of tables are gone through beside the loop."""

_TABLES: Final = """SELECT TABLE_SCHEMA, TABLE_NAME{estimate} FROM information_schema.TABLES
 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ({kinds})"""
_ESTIMATE: Final = ", TABLE_ROWS"
"""Only of tables that are wanted: the server opens each for it."""
_KINDS: Final = "'BASE TABLE'"
_KINDS_WITH_VIEWS: Final = "'BASE TABLE', 'VIEW'"

_COLUMNS: Final = """SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE,
 CHARACTER_SET_NAME, COLLATION_NAME, CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = DATABASE(){scope} ORDER BY TABLE_NAME, ORDINAL_POSITION"""

_KEYS: Final = """SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS
 WHERE TABLE_SCHEMA = DATABASE() AND INDEX_NAME = 'PRIMARY'{scope}"""

_JSON: Final = """SELECT TABLE_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS
 WHERE CONSTRAINT_SCHEMA = DATABASE() AND CHECK_CLAUSE LIKE 'json_valid(%'{scope}"""
"""MariaDB's JSON type is a long text with just this check."""

_NO_CHARSET: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """As the catalogue describes it. ``max_bytes``: of a text or binary column, as stored."""

    name: str
    data_type: str
    declared: str
    nullable: bool
    primary_key: bool
    charset: str = _NO_CHARSET
    collation: str = _NO_CHARSET
    max_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    schema: str
    name: str
    columns: tuple[Column, ...]
    estimated_rows: int | None = None


class Catalogue:
    """What a session sees of the connected database."""

    def __init__(self, session: Session, *, include_views: bool) -> None:
        self._session = session
        self._parsers = session.threads.of(_PARSERS)
        self._kinds = _KINDS_WITH_VIEWS if include_views else _KINDS

    async def snapshot(self, wanted: Iterable[str] | None, config_name: str) -> SchemaSnapshot:
        """The wanted tables, else all.

        A name that several tables differ from in case alone is told as ambiguous.
        """
        named: dict[str, Table] = {}
        ambiguous = []
        if wanted is None:
            named = {shown_table(name): table for name, table in (await self._read(None)).items()}
        else:
            for name, meant in (await self._meant(wanted)).items():
                if len(meant) == 1:
                    named[name] = meant[0]
                else:
                    shown = tuple(sorted(shown_table(table.name) for table in meant))
                    ambiguous.append(AmbiguousTable(name, shown))
        return await in_thread(self._parsers, _schema, config_name, named, tuple(ambiguous))

    async def tables(self, wanted: Iterable[str]) -> dict[str, Table]:
        """Of the wanted tables those that exist, and are the only ones meant."""
        meant = await self._meant(wanted)
        return {name: tables[0] for name, tables in meant.items() if len(tables) == 1}

    async def _meant(self, wanted: Iterable[str]) -> dict[str, list[Table]]:
        listed = await self._session.execute(self._listing(), Stage.SCHEMA)
        existing = [_text(row[1]) for row in listed]
        database = _text(listed[0][0]) if listed else ""
        chosen = {name: meant_tables(name, database, existing) for name in wanted}
        real = sorted({table for tables in chosen.values() for table in tables})
        found = await self._read(real) if real else {}
        meant = {name: [found[t] for t in tables if t in found] for name, tables in chosen.items()}
        return {name: tables for name, tables in meant.items() if tables}

    async def _read(self, only: Sequence[str] | None) -> dict[str, Table]:
        scope = estimate = ""
        if only is not None:
            # the server's look-up by name takes one of those that differ in case alone
            alike = len({name.casefold() for name in only}) < len(only)
            place = "CAST(TABLE_NAME AS BINARY)" if alike else "TABLE_NAME"
            scope = f" AND {place} IN ({', '.join(map(text_literal, only))})"
            estimate = _ESTIMATE
        statements = [
            self._listing(estimate) + scope,
            _COLUMNS.format(scope=scope),
            _KEYS.format(scope=scope),
        ]
        results = [await self._session.execute(each, Stage.SCHEMA) for each in statements]
        # the server opens every table for its checks: as long as for all else together
        if self._session.is_mariadb and await in_thread(
            self._parsers, _any_may_be_json, results[1]
        ):
            statement = _JSON.format(scope=scope)
            results.append(await self._session.execute(statement, Stage.SCHEMA))
        return await in_thread(self._parsers, _assembled, results)

    async def _may_hold_json(self, columns: Sequence[Row]) -> bool:
        return await in_thread(self._parsers, _any_may_be_json, columns)

    def _listing(self, estimate: str = "") -> str:
        return _TABLES.format(kinds=self._kinds, estimate=estimate)


def _assembled(results: Sequence[Sequence[Row]]) -> dict[str, Table]:
    tables, columns, keys, *rest = results
    schemas = {_text(name): _text(schema) for schema, name, *_ in tables}
    estimates = {_text(name): row_estimate(told) for _, name, *rest in tables for told in rest}
    key_columns = {(table, column) for table, column in keys}
    checked = {(table, clause) for table, clause in (rest[0] if rest else ())}
    by_table: dict[str, list[Column]] = {name: [] for name in schemas}
    # of thousands of tables most columns are like another: an object each would take most of the
    # time, and the garbage collector stops the process for all of them at once
    alike: dict[tuple[Row, bool, bool], Column] = {}
    for table, *facts in columns:
        found = by_table.get(_text(table))
        if found is None:
            continue
        is_key = (table, facts[0]) in key_columns
        is_json = bool(checked) and _may_be_json(facts) and (table, _check(facts)) in checked
        described = tuple(facts), is_key, is_json
        column = alike.get(described)
        if column is None:
            column = alike[described] = _column(facts, is_key=is_key, is_json=is_json)
        found.append(column)
    return {
        name: Table(
            schema=schemas[name],
            name=name,
            columns=tuple(found),
            estimated_rows=estimates.get(name),
        )
        for name, found in by_table.items()
        if found
    }


def _any_may_be_json(columns: Sequence[Row]) -> bool:
    return any(_may_be_json(facts) for _table, *facts in columns)


def _may_be_json(facts: Sequence[str | None]) -> bool:
    return facts[1] == "longtext" and facts[5] == "utf8mb4_bin"


def _check(facts: Sequence[str | None]) -> str:
    return f"json_valid(`{_text(facts[0]).replace('`', '``')}`)"


def _column(facts: Sequence[str | None], *, is_key: bool, is_json: bool) -> Column:
    name, data_type, declared, nullable, charset, collation, size = facts
    return Column(
        name=_text(name),
        data_type="json" if is_json else _text(data_type).lower(),
        declared="json" if is_json else _text(declared),
        nullable=nullable == "YES",
        primary_key=is_key,
        charset=charset or _NO_CHARSET,
        collation=collation or _NO_CHARSET,
        max_bytes=int(size or 0),
    )


def _schema(
    config_name: str, tables: Mapping[str, Table], ambiguous: tuple[AmbiguousTable, ...]
) -> SchemaSnapshot:
    return prepared_snapshot(
        SchemaSnapshot(
            config_name,
            tuple(_table_snapshots(tables)),
            ignores_case=True,
            ambiguous=ambiguous,
        ),
        config_name=config_name,
        source=SourceNames(MYSQL),
        filter_system=True,
        normalize=False,
    )


def _table_snapshots(tables: Mapping[str, Table]) -> Iterator[TableSnapshot]:
    columns = {id(column): column for table in tables.values() for column in table.columns}
    shown = {
        key: ColumnSnapshot(
            column.name, column.declared, nullable=column.nullable, primary_key=column.primary_key
        )
        for key, column in columns.items()
    }
    for name, table in tables.items():
        names = tuple(column.name for column in table.columns)
        described = tuple(shown[id(column)] for column in table.columns)
        yield TableSnapshot(name, names, described, table.estimated_rows)


def _text(value: str | None) -> str:
    return value or ""
