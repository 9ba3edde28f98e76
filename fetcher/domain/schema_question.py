"""What is asked of ``validate-schema``, and what can be said of it without a look outside.

The order of the checks is the Wire's (spec rest-api 8.9).
"""

from collections.abc import Sequence, Sized

from fetcher.domain.errors import FetcherError
from fetcher.domain.job_order import AskedFields, check_name
from fetcher.domain.jobs import MappedFields
from fetcher.domain.member_paths import member
from fetcher_engine import Limits

_ROOT = "mappedFields"


def checked_question(asked: AskedFields | None, *, ceilings: Limits) -> MappedFields:
    """The fields by source and table, each once, in the order in which they were asked for.

    Raise ``FET-0402``, ``FET-0401`` or ``FET-1061``. Pure, and linear in what was sent.
    """
    if asked is None:
        raise FetcherError(
            "FET-0402",
            "Missing Fields in Request",
            f"missing: {_ROOT}",
            fields={_ROOT: "is required"},
        )
    if not asked:
        raise FetcherError("FET-0401", "Invalid Data Request", f"{_ROOT} names no data source")
    _check_count(asked, ceilings.max_datasources, _ROOT, "data sources")
    for source, tables in asked.items():
        path = member(_ROOT, source)
        check_name(source, path)
        _check_count(tables, ceilings.max_tables_per_datasource, path, "tables")
        for table, names in tables.items():
            _check_table(table, names, member(path, table), ceilings)
    return {
        source: {table: tuple(dict.fromkeys(names)) for table, names in tables.items()}
        for source, tables in asked.items()
    }


def _check_table(table: str, names: Sequence[str], path: str, ceilings: Limits) -> None:
    check_name(table, path)
    _check_count(set(names), ceilings.max_fields_per_table, path, "fields")
    for index, name in enumerate(names):
        check_name(name, f"{path}[{index}]")


def _check_count(named: Sized, most: int, path: str, what: str) -> None:
    if len(named) > most:
        raise limit_exceeded(f"{path} names more than {most} {what}")


def limit_exceeded(message: str) -> FetcherError:
    return FetcherError("FET-1061", "Validation Limit Exceeded", message)
