"""One table is the collections of many organisations, one behind the other (spec 15)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.plugin_crm import (
    ENCRYPT_KEY_MISSING,
    ENCRYPT_KEY_UNUSABLE,
    HASH_KEY_MISSING,
    asked_field,
    decrypted_paths,
    extracted_collections,
    search_filters,
)
from fetcher.crypto.sealed_fields import (
    EncryptKeyMissing,
    EncryptKeyUnusable,
    FieldCipher,
    HashKeyMissing,
    SealedFieldKeyError,
    SealedFieldKeys,
)
from fetcher.datasources.mongodb.errors import SCHEMA_CHANGED
from fetcher.datasources.mongodb.layout import OwnCollections, Reading, RowWriter, is_whole
from fetcher.datasources.mongodb.query import CollectionQuery, prepare_query
from fetcher.datasources.mongodb.schema import Source, collection_names
from fetcher.datasources.plugin_crm.opening import OpeningWriter
from fetcher.datasources.plugin_crm.schema import logical_table, types_of
from fetcher.domain.connections import SourceType
from fetcher_engine import SchemaSnapshot, SourceFailure, Stage, StreamRequest

_KEY_REASONS: Mapping[type[SealedFieldKeyError], str] = {
    HashKeyMissing: HASH_KEY_MISSING,
    EncryptKeyMissing: ENCRYPT_KEY_MISSING,
    EncryptKeyUnusable: ENCRYPT_KEY_UNUSABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """What is asked of one logical collection, as far as no look at the database is needed."""

    table: str
    fields: Sequence[str]
    filters: Mapping[str, Mapping[str, tuple[object, ...]]] = field(repr=False)
    sealed_paths: Sequence[str]
    cipher: FieldCipher | None


class OrganisationCollections:
    """Implements :class:`fetcher.datasources.mongodb.layout.Layout`."""

    def __init__(
        self,
        *,
        config_name: str,
        requested: Mapping[str, Sequence[str]] | None,
        wanted: Mapping[str, Sequence[str]] | None,
        organisations: Collection[str] | None,
        keys: SealedFieldKeys,
        new_writer: Callable[[], RowWriter],
    ) -> None:
        """``requested`` are the logical collections and fields as they were asked for, ``wanted``
        those with the fields to filter by. Only these ``organisations`` are read, where some are
        named."""
        self._config_name = config_name
        self._requested = requested
        self._wanted = wanted
        self._organisations = organisations
        self._keys = keys
        self._new_writer = new_writer

    def snapshot(self, database: Source) -> SchemaSnapshot:
        """The logical collections that were asked for; where none was, what lies in the database.

        A logical name is only known from a request: nothing in the database tells where it ends.
        """
        if self._wanted is None:
            return OwnCollections(
                config_name=self._config_name, requested=None, new_writer=self._new_writer
            ).snapshot(database)
        names = collection_names(database)
        tables = [
            logical_table(database, logical, found, fields)
            for logical, fields in sorted(self._wanted.items())
            if (found := self._collections(logical, names))
        ]
        return prepared_snapshot(
            SchemaSnapshot(self._config_name, tuple(tables)),
            config_name=self._config_name,
            source=SourceNames(SourceType.MONGODB),
            filter_system=False,
            normalize=False,
        )

    def readings(self, database: Source, request: StreamRequest) -> list[Reading]:
        """Every organisation's collection, sorted by name within its table.

        Raise SourceFailure for a key that is missing before anything is asked of the database.
        """
        selections = [self._selection(request, table) for table in request.tables]
        names = collection_names(database)
        readings: list[Reading] = []
        for selection in selections:
            found = self._collections(selection.table, names)
            if not found:
                raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=selection.table)
            query = _query(database, found, selection)
            writer = self._writer(selection)
            readings += [Reading(replace(query, collection=name), writer) for name in found]
        return readings

    def _collections(self, logical: str, names: Sequence[str]) -> tuple[str, ...]:
        return extracted_collections(logical, names, self._organisations)

    def _selection(self, request: StreamRequest, table: str) -> _Selection:
        """Any filter at all needs the hash key (spec 15.4)."""
        fields = () if is_whole(self._requested, table) else request.tables[table]
        filters = request.filters.get(table, {})
        sealed_paths = decrypted_paths(fields)
        reason = ""
        try:
            return _Selection(
                table=table,
                fields=fields,
                filters=search_filters(filters, self._keys.search_hash(), table=table)
                if filters
                else {},
                sealed_paths=sealed_paths,
                cipher=self._keys.cipher() if sealed_paths else None,
            )
        except SealedFieldKeyError as error:
            reason = _KEY_REASONS[type(error)]
        raise SourceFailure(Stage.QUERY, reason, table=table)

    def _writer(self, selection: _Selection) -> RowWriter:
        writer = self._new_writer()
        if selection.cipher is None:
            return writer
        return OpeningWriter(
            writer, selection.cipher, selection.sealed_paths, table=selection.table
        )


def _query(database: Source, collections: Sequence[str], selection: _Selection) -> CollectionQuery:
    """One query for all organisations. What a hash is compared with may be of any type."""
    plain = [place for place in selection.filters if asked_field(place) == place]
    types = types_of(database, collections, plain)
    try:
        return prepare_query(
            name=selection.table,
            fields=selection.fields,
            filters=selection.filters,
            types={place: types.get(place, frozenset()) for place in selection.filters},
        )
    except SourceFailure as error:
        failure = error
    column = None if failure.column is None else asked_field(failure.column)
    raise SourceFailure(failure.stage, failure.reason, table=failure.table, column=column)
