"""The statements for the cases, in words: what SQL Server and Oracle are sent."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fetcher.datasources.oracle import query as oracle
from fetcher.datasources.oracle.names import TableId as OracleTable
from fetcher.datasources.oracle.schema import Column as OracleColumn
from fetcher.datasources.oracle.types import column_type
from fetcher.datasources.sqlserver import query as sqlserver
from fetcher.datasources.sqlserver.types import Column as SqlServerColumn
from fetcher.datasources.table_names import TableId as SqlServerTable
from fetcher.domain.connections import SourceType
from fetcher.domain.json_text import dumps
from tests.operators.cases import CASES
from tests.operators.rows import COLUMNS, TABLE

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "filters"

SQLSERVER_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "id": ("int", 4),
    "qty": ("int", 4),
    "big": ("bigint", 8),
    "price": ("decimal", 9),
    "ratio": ("float", 8),
    "name": ("nvarchar", 120),
    "flag": ("bit", 1),
    "born": ("date", 3),
    "seen": ("datetime2", 7),
    "at": ("datetimeoffset", 9),
    "token": ("uniqueidentifier", 16),
    "raw": ("varbinary", 20),
}
"""By column its type and bytes, as ``sys.columns`` tells them of the layout."""

ORACLE_TYPES: Final[Mapping[str, tuple[str, int, int | None, int | None]]] = {
    "id": ("NUMBER", 22, 10, 0),
    "qty": ("NUMBER", 22, 10, 0),
    "big": ("NUMBER", 22, 19, 0),
    "price": ("NUMBER", 22, 12, 2),
    "ratio": ("BINARY_DOUBLE", 8, None, None),
    "name": ("NVARCHAR2", 120, None, None),
    "flag": ("NUMBER", 22, 1, 0),
    "born": ("DATE", 7, None, None),
    "seen": ("TIMESTAMP(3)", 11, None, 3),
    "at": ("TIMESTAMP(3) WITH TIME ZONE", 13, None, 3),
    "token": ("VARCHAR2", 36, None, None),
    "raw": ("RAW", 20, None, None),
}
"""The same by ``ALL_TAB_COLUMNS``: type, bytes, precision, scale."""

Statement = tuple[str, Sequence[object], Sequence[str]]
"""Its text, what is bound, and as what."""


def sqlserver_statement(where: Mapping[str, object]) -> Statement:
    columns = {
        name: SqlServerColumn(
            name=name,
            base_type=SQLSERVER_TYPES[name][0],
            type=SQLSERVER_TYPES[name][0],
            max_bytes=SQLSERVER_TYPES[name][1],
            is_nullable=name != "id",
            is_primary_key=name == "id",
            collation="Latin1_General_CI_AS" if name == "name" else None,
        )
        for name in COLUMNS
    }
    prepared = sqlserver.prepare_table(
        name=TABLE,
        table=SqlServerTable("dbo", TABLE),
        columns=columns,
        fields=["id"],
        filters=where,
        max_cell_bytes=1000,
        takes_long_lists=True,
    ).statement
    types = ["float" if isinstance(each, float) else "nvarchar" for each in prepared.values]
    return prepared.text, prepared.values, types


def oracle_statement(where: Mapping[str, object]) -> Statement:
    columns = []
    for name in COLUMNS:
        type_name, size, precision, scale = ORACLE_TYPES[name]
        of = column_type(type_name, max_bytes=size, precision=precision, scale=scale)
        columns.append(
            OracleColumn(name=name.upper(), type=of, is_nullable=name != "id", is_key=name == "id")
        )
    prepared = oracle.prepare_table(
        name=TABLE.upper(),
        table=OracleTable("HR", TABLE.upper()),
        columns=columns,
        fields=["ID"],
        filters={name.upper(): condition for name, condition in where.items()},
        max_cell_bytes=1000,
    )
    types = [each.name.removeprefix("DB_TYPE_").lower() for each in prepared.bind_types]
    return prepared.statement, prepared.values, types


STATEMENTS: Final = {
    SourceType.SQL_SERVER: sqlserver_statement,
    SourceType.ORACLE: oracle_statement,
}


def golden_lines(kind: SourceType) -> Iterator[str]:
    """Every case: its filter, then the condition, then what is bound as what."""
    yield "# regenerate: python -m tests.operators.golden"
    for case in CASES:
        text, values, types = STATEMENTS[kind](case.where)
        _, _, condition = text.partition(" WHERE ")
        yield ""
        yield _short(dumps(case.where))
        yield f"  {_short(condition)}"
        bound = [f"{of} {value!r}" for of, value in zip(types, values, strict=True)]
        yield f"  {_short(', '.join(bound))}".rstrip()


def _short(text: str) -> str:
    """Long lists by their ends."""
    return text if len(text) <= 600 else f"{text[:300]} … {text[-300:]} ({len(text)} characters)"


def golden_text(kind: SourceType) -> str:
    return "\n".join([*golden_lines(kind), ""])


def golden_file(kind: SourceType) -> Path:
    return GOLDEN / f"{kind.lower()}.txt"
