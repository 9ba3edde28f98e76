"""The schema of a database that has none: its collections, and what a sample of each tells.

A sample is a guess, and the column types say so: ``number|string (inferred from 1000 documents)``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from bson import decode_iter
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import ExecutionTimeout, PyMongoError

from fetcher.datasources.mongodb.batch_sizes import BatchSize
from fetcher.datasources.mongodb.driver_internals import RawBatches, ask_for
from fetcher.datasources.mongodb.errors import is_forbidden
from fetcher.datasources.mongodb.inference import LENIENT, UNKNOWN, Inferred, is_path, is_path_part
from fetcher.datasources.mongodb.query import projection_of
from fetcher_engine import ColumnSnapshot, TableSnapshot

PROBE_MS: Final = 2000
_SAMPLING_MS: Final = 10_000
_BATCH_DOCUMENTS: Final = 200

_SIZES: Final = ((1000, 1000), (10_000, 1000), (100_000, 2000), (1_000_000, 5000))
"""Up to so many documents, a sample of so many."""

_LARGEST_SAMPLE: Final = 10_000
_WHOLE_AT_MOST: Final = 1000
_FEW: Final = 20

Source: TypeAlias = Database[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sample:
    """What ``documents`` of a collection told, and how many the server says that it has."""

    inferred: Inferred
    documents: int
    estimated_rows: int | None


def sample_size(count: int) -> int:
    """How many documents tell about ``count``."""
    for most, size in _SIZES:
        if count <= most:
            return min(count, size)
    return _LARGEST_SAMPLE


def collection_names(database: Source) -> list[str]:
    """Collections and views that the user may see, without the server's own."""
    names = database.list_collection_names(authorizedCollections=True)
    return sorted(name for name in names if not name.startswith("system."))


def read_tables(
    database: Source, requested: Mapping[str, Sequence[str]] | None
) -> list[TableSnapshot]:
    """Of the requested collections those that exist, else all. Raise PyMongoError."""
    names = collection_names(database)
    if requested is not None:
        names = [name for name in names if name in requested]
    return [_table(database, name, (requested or {}).get(name, ())) for name in names]


def _table(database: Source, name: str, wanted: Sequence[str]) -> TableSnapshot:
    """A collection that may not be read is listed without fields."""
    try:
        sample = infer(database, name)
        types = sample.inferred.types
        missing = [field for field in wanted if field not in types and is_path(field)]
        for field in missing:
            if not sample.documents or exists(database, name, field):
                types.setdefault(field, set())
    except PyMongoError as error:
        if not is_forbidden(error):
            raise
        return TableSnapshot(name, ())
    return table_of(name, sample)


def table_of(name: str, sample: Sample) -> TableSnapshot:
    """What a sample tells of a table."""
    inferred = sample.inferred
    # every document has one, also of an empty collection
    inferred.types.setdefault("_id", set())
    # beyond the top level a field is a path, which is no column of its own
    columns = [path for path in inferred.types if is_path_part(path)]
    return TableSnapshot(
        name,
        tuple(inferred.types),
        tuple(
            ColumnSnapshot(
                path,
                f"{inferred.label(path)} (inferred from {sample.documents} documents)",
                primary_key=path == "_id",
                nullable=path != "_id",
            )
            for path in columns
        ),
        sample.estimated_rows,
    )


def infer(database: Source, name: str, fields: Sequence[str] = ()) -> Sample:
    """One pass over a sample, of some ``fields`` or of all."""
    count = database[name].estimated_document_count(maxTimeMS=_SAMPLING_MS)
    inferred = Inferred()
    seen = 0
    for document in _sampled(database, name, count, fields):
        inferred.look_at([document])
        seen += 1
    # a view has no count, and one that is less than what was seen is no guess worth telling
    return Sample(inferred, seen, count if count >= seen else None)


def _sampled(
    database: Source, name: str, count: int, fields: Sequence[str]
) -> Iterable[dict[str, Any]]:
    projection = projection_of(fields) if fields else None
    collection = database[name]
    size = BatchSize(_BATCH_DOCUMENTS)
    batches: RawBatches
    if count <= _WHOLE_AT_MOST:
        # also where the count is not known (views), or not up to date
        batches = collection.find_raw_batches(
            {},
            projection,
            limit=_WHOLE_AT_MOST,
            batch_size=size.documents,
            max_time_ms=_SAMPLING_MS,
        )
    else:
        stages: list[dict[str, Any]] = [{"$sample": {"size": sample_size(count)}}]
        if projection is not None:
            stages.append({"$project": projection})
        batches = collection.aggregate_raw_batches(
            stages,
            batchSize=size.documents,
            maxTimeMS=_SAMPLING_MS,
        )
    with batches:
        for batch in batches:
            raw = cast("bytes", batch)
            documents = 0
            for document in decode_iter(raw, LENIENT):
                documents += 1
                yield document
            size.learn(documents, len(raw))
            ask_for(batches, size.documents)


def exists(database: Source, name: str, field: str) -> bool:
    """Whether some document has what no document of the sample had. Two seconds without an answer
    are a yes: a field that turns out to be missing makes no row wrong."""
    there = {field: {"$exists": True}}
    try:
        return database[name].find_one(there, {"_id": True}, max_time_ms=PROBE_MS) is not None
    except ExecutionTimeout:
        return True


def types_of(database: Source, name: str, fields: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """What the values of some fields are, for their filters; empty where that is not known.

    Of arrays only their elements are compared, and those were not looked at.
    """
    wanted = sorted(filter(is_path, set(fields)))
    if not wanted:
        return {}
    collection = database.get_collection(name, codec_options=LENIENT)
    inferred = infer(database, name, wanted).inferred
    for field in wanted:
        if not inferred.types.get(field):
            inferred.look_at(_few(collection, field))
    return {field: comparable(inferred.types.get(field, set())) for field in wanted}


def _few(collection: Collection[dict[str, Any]], field: str) -> Iterator[dict[str, Any]]:
    """Some documents that have the field; those that come within 2 seconds."""
    there = {field: {"$exists": True, "$ne": None}}
    try:
        yield from collection.find(there, [field], max_time_ms=PROBE_MS, limit=_FEW)
    except ExecutionTimeout:
        return


def comparable(types: set[str]) -> frozenset[str]:
    """Empty where a filter's values may be of any type."""
    return frozenset() if types & {UNKNOWN, "array"} else frozenset(types - {"object"})
