"""What is asked of one collection: which documents, and which of their fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.mongodb.errors import (
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    UNSUPPORTED_NAME,
)
from fetcher.datasources.mongodb.filters import Clause, clause_of, condition_of
from fetcher.datasources.mongodb.inference import is_path
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher_engine import SourceFailure, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionQuery:
    """``projection`` is None for whole documents; ``name`` is what the rows are called."""

    name: str
    collection: str
    condition: Mapping[str, Any] = field(repr=False)
    projection: Mapping[str, int] | None


def prepare_query(
    *,
    name: str,
    fields: Sequence[str],
    filters: Mapping[str, object],
    types: Mapping[str, frozenset[str]],
) -> CollectionQuery:
    """No ``fields`` are all. Raise SourceFailure for a filter that cannot be applied, and for names
    that MongoDB would read as something else."""
    for each in (*fields, *filters):
        if not is_path(each):
            raise SourceFailure(Stage.QUERY, UNSUPPORTED_NAME, table=name, column=each)
    return CollectionQuery(
        name=name,
        collection=name,
        condition=_condition(name, filters, types),
        projection=projection_of(fields) if fields else None,
    )


def projection_of(fields: Sequence[str]) -> Mapping[str, int]:
    """``_id`` always comes along. A part of what is asked for whole must not be named too."""
    asked = set(fields)
    return {each: 1 for each in sorted(asked) if asked.isdisjoint(_parents(each))}


def _parents(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _condition(
    name: str, filters: Mapping[str, object], types: Mapping[str, frozenset[str]]
) -> Mapping[str, Any]:
    clauses: list[Clause] = []
    for column in sorted(filters):
        reason = INVALID_FILTER
        found: list[Clause | None] = []
        try:
            predicates = predicates_of(filters[column])
            reason = INVALID_FILTER_VALUE
            found = [clause_of(column, types[column], each) for each in predicates]
        except (MalformedCondition, UnfitValue):
            failed = True
        else:
            failed = False
        if failed:
            raise SourceFailure(Stage.QUERY, reason, table=name, column=column)
        clauses += [clause for clause in found if clause is not None]
    return condition_of(clauses)
