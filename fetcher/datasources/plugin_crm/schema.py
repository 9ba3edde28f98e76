"""What a logical collection has: that of its organisations together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pymongo.errors import PyMongoError

from fetcher.compat.plugin_crm import known_paths
from fetcher.datasources.mongodb.errors import is_forbidden
from fetcher.datasources.mongodb.inference import Inferred, is_path
from fetcher.datasources.mongodb.schema import Sample, Source, comparable, exists, infer, table_of
from fetcher_engine import TableSnapshot

_SAMPLED: Final = 10
"""How many organisations' documents are looked at; the product writes alike for all of them."""


def logical_table(
    database: Source, logical: str, collections: Sequence[str], wanted: Sequence[str]
) -> TableSnapshot:
    """Raise PyMongoError.

    Its fields are those of a sample, the ``wanted`` ones that any document has, and those that the
    product itself defines: that no organisation has filled one of them in yet is no mistake.
    """
    inferred, sampled = Inferred(), 0
    estimates: list[int | None] = []
    for name in collections[:_SAMPLED]:
        sample = _add(inferred, database, name)
        sampled += sample.documents
        estimates.append(sample.estimated_rows)
    for path in known_paths():
        inferred.types.setdefault(path, set())
    for field in filter(is_path, wanted):
        if field not in inferred.types and (
            not sampled or any(exists(database, name, field) for name in collections)
        ):
            inferred.types[field] = set()
    return table_of(logical, Sample(inferred, sampled, _sum(estimates, len(collections))))


def types_of(
    database: Source, collections: Sequence[str], fields: Iterable[str]
) -> Mapping[str, frozenset[str]]:
    """What the values of some fields are in all organisations; empty where that is not known."""
    wanted = sorted(filter(is_path, fields))
    inferred = Inferred()
    if wanted:
        for name in collections:
            _add(inferred, database, name, wanted)
    return {field: comparable(inferred.types.get(field, set())) for field in wanted}


def _sum(estimates: Sequence[int | None], collections: int) -> int | None:
    """The rows of all collections, where each of them is known."""
    known = [each for each in estimates if each is not None]
    return sum(known) if len(known) == collections else None


def _add(inferred: Inferred, database: Source, name: str, fields: Sequence[str] = ()) -> Sample:
    """What one collection's documents told: nothing where they may not be read."""
    try:
        sample = infer(database, name, fields)
    except PyMongoError as error:
        if not is_forbidden(error):
            raise
        return Sample(Inferred(), 0, None)
    for path, types in sample.inferred.types.items():
        inferred.types.setdefault(path, set()).update(types)
    return sample
