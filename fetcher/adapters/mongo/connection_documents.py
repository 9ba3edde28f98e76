"""A connection and its document (spec rest-api 12.2)."""

from collections.abc import Mapping
from typing import Any, Final

from bson import Binary

from fetcher.adapters.mongo.bson_values import from_bson, to_bson
from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.ids import ConnectionId
from fetcher.domain.json_values import JsonObject

RECORD: Final = "connection record"
LIVE: Final[Document] = {"deleted_at": None}

_NEVER_PATCHED: Final = frozenset({"_id", "product_name", "created_at", "deleted_at"})
_NO_TEXT: Final[Document] = {"$in": [None, ""]}
"""As the reader takes it: absent, null and empty are the same."""
_TYPES: Final = {each.value: each for each in SourceType}


def connection_document(connection: Connection) -> Document:
    """The document of an insert: what is unset is absent, but ``deleted_at`` is always there."""
    document: Document = {
        "_id": Binary(connection.id.bytes, 0),
        "product_name": connection.product_name,
        "config_name": connection.config_name,
        "type": connection.type.value,
        "host": connection.host,
        "port": connection.port,
        "database_name": connection.database_name,
        "username": connection.username,
        "password_encrypted": connection.password_encrypted,
        "encryption_key_version": connection.encryption_key_version,
        "created_at": connection.created_at,
        "updated_at": connection.updated_at,
        "deleted_at": connection.deleted_at,
    }
    if connection.schema is not None:
        document["schema"] = connection.schema
    if connection.tls is not None:
        document["ssl"] = _tls_document(connection.tls)
    if connection.metadata:
        document["metadata"] = to_bson(connection.metadata)
    return document


def changed_fields(connection: Connection) -> Document:
    """What a patch sets: all but id, product, creation and deletion, null where it is unset."""
    whole = connection_document(connection)
    unset = {"schema": None, "ssl": None, "metadata": None}
    return {name: value for name, value in (unset | whole).items() if name not in _NEVER_PATCHED}


def sealed_fields(connection: Connection) -> Document:
    """What is sealed, by the paths where it is stored."""
    return {
        "password_encrypted": connection.password_encrypted,
        "encryption_key_version": connection.encryption_key_version,
        "ssl.key": connection.sealed_tls_key,
    }


def as_read(before: Connection) -> Document:
    """The condition of :meth:`Connection.is_as_read`."""
    sealed = {name: text or _NO_TEXT for name, text in sealed_fields(before).items()}
    return {"updated_at": before.updated_at, **sealed}


def read_connection(document: Mapping[str, Any]) -> Connection:
    """Raise RecordCorrupt, naming the field, for what is no connection."""
    fields = DocumentFields(RECORD, document)
    source_type = _TYPES.get(fields.text("type"))
    if source_type is None:
        raise fields.corrupt("type")
    return Connection(
        id=ConnectionId(fields.record_id()),
        product_name=fields.text("product_name"),
        config_name=fields.text("config_name"),
        type=source_type,
        host=fields.text("host"),
        port=fields.count("port"),
        database_name=fields.text("database_name"),
        schema=fields.optional_text("schema"),
        username=fields.text("username"),
        password_encrypted=fields.text("password_encrypted"),
        encryption_key_version=fields.text("encryption_key_version"),
        tls=_read_tls(fields.document("ssl")),
        metadata=_read_metadata(fields.document("metadata")),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
        deleted_at=fields.optional_time("deleted_at"),
    )


def _tls_document(tls: TlsSettings) -> Document:
    pem = {"ca": tls.ca, "cert": tls.cert, "key": tls.key}
    return {"mode": tls.mode, **{name: text for name, text in pem.items() if text}}


def _read_tls(document: Mapping[str, Any]) -> TlsSettings | None:
    if not document:
        return None
    fields = DocumentFields(f"{RECORD}: ssl", document)
    return TlsSettings(
        mode=fields.text("mode"),
        ca=fields.text("ca"),
        cert=fields.text("cert"),
        key=fields.text("key"),
    )


def _read_metadata(document: Mapping[str, Any]) -> JsonObject:
    return {name: from_bson(value, field=f"{RECORD}: metadata") for name, value in document.items()}
