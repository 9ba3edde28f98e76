"""What SQL Server and Oracle are sent for every case, and what it means."""

from collections.abc import Iterable, Mapping
from contextlib import closing

import pytest

from fetcher.domain.connections import SourceType
from fetcher.domain.jobs import Operator
from tests.operators.cases import CASES, Case
from tests.operators.evaluation import OracleRows, SqlServerRows
from tests.operators.rows import ColumnKind
from tests.operators.statements import STATEMENTS, golden_file, golden_text

ROWS: Mapping[SourceType, type[SqlServerRows | OracleRows]] = {
    SourceType.SQL_SERVER: SqlServerRows,
    SourceType.ORACLE: OracleRows,
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements_are_the_golden_ones(kind: SourceType) -> None:
    assert golden_text(kind) == golden_file(kind).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements_mean_the_rows_of_the_cases(kind: SourceType) -> None:
    wrong = []
    with closing(ROWS[kind]()) as rows:
        for case in CASES:
            text, values, _ = STATEMENTS[kind](case.where)
            found = tuple(sorted(each for (each,) in rows.ids(text, values)))
            if found != case.expected(kind):
                wrong.append((case.where, text, found, case.expected(kind)))
    assert wrong == []


def test_every_operator_has_cases_on_every_kind_of_column() -> None:
    asked = {(column, operator) for case in CASES for column, operator in _pairs(case)}
    wanted = {
        (kind.value, operator.value)
        for kind in ColumnKind
        for operator in Operator
        if operator is not Operator.LIKE or kind is ColumnKind.TEXT
    }
    assert wanted - asked == set()


def _pairs(case: Case) -> Iterable[tuple[str, str]]:
    return ((column, operator) for column, each in case.where.items() for operator in each)
