"""Which collections the tables of a request are, and how their documents are written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.datasources.mongodb.errors import SCHEMA_CHANGED
from fetcher.datasources.mongodb.query import CollectionQuery, prepare_query
from fetcher.datasources.mongodb.schema import Source, collection_names, read_tables, types_of
from fetcher.domain.connections import SourceType
from fetcher_engine import SchemaSnapshot, SourceFailure, Stage, StreamRequest


class RowWriter(Protocol):
    """Writes documents as JSON objects."""

    def rows(self, data: bytes, starts: Sequence[int]) -> list[str]:
        """The documents in order, in texts of one or more with commas between them, as
        :meth:`fetcher.datasources.mongodb.bson_json.BsonWriter.rows`; a SourceFailure that it
        raises ends the table."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """One collection to read."""

    query: CollectionQuery
    writer: RowWriter


class Layout(Protocol):
    """Blocking, in the session's thread: raises SourceFailure, PyMongoError."""

    def snapshot(self, database: Source) -> SchemaSnapshot:
        """The asked tables that exist, else all."""
        ...

    def readings(self, database: Source, request: StreamRequest) -> list[Reading]:
        """What is read for the request, in its order."""
        ...


class OwnCollections:
    """Each table is the collection of its name."""

    def __init__(
        self,
        *,
        config_name: str,
        requested: Mapping[str, Sequence[str]] | None,
        new_writer: Callable[[], RowWriter],
        wanted: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """``requested`` are the collections and fields as they were asked for; ``wanted`` those
        with the fields to filter by."""
        self._config_name = config_name
        self._requested = requested
        self._wanted = requested if wanted is None else wanted
        self._new_writer = new_writer

    def snapshot(self, database: Source) -> SchemaSnapshot:
        return prepared_snapshot(
            SchemaSnapshot(self._config_name, tuple(read_tables(database, self._wanted))),
            config_name=self._config_name,
            source=SourceNames(SourceType.MONGODB),
            filter_system=True,
            normalize=False,
        )

    def readings(self, database: Source, request: StreamRequest) -> list[Reading]:
        """Look the collections up again, and learn what the filtered fields hold."""
        there = set(collection_names(database))
        return [
            Reading(self._query(database, name, fields, request, there), self._new_writer())
            for name, fields in request.tables.items()
        ]

    def _query(
        self,
        database: Source,
        name: str,
        fields: Sequence[str],
        request: StreamRequest,
        there: set[str],
    ) -> CollectionQuery:
        if name not in there:
            raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
        filters = request.filters.get(name, {})
        return prepare_query(
            name=name,
            fields=() if is_whole(self._requested, name) else fields,
            filters=filters,
            types=types_of(database, name, filters),
        )


def is_whole(requested: Mapping[str, Sequence[str]] | None, name: str) -> bool:
    """Whether all fields were asked for: all there are, not only those of a sample."""
    return requested is not None and set(requested.get(name, ())) == {"*"}
