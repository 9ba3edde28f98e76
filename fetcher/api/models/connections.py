"""Bodies of the connection operations (spec rest-api 7 and 8)."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from fetcher.api.models.request_schemas import create_connection_schema, patch_connection_schema
from fetcher.api.payloads import Part
from fetcher.commands.connection_input import ConnectionChange, NewConnection, TlsInput
from fetcher.commands.connection_test import Reached
from fetcher.domain.connections import Connection, ConnectionPage
from fetcher.domain.json_values import JsonObject
from fetcher.domain.timestamps import rfc3339
from fetcher_engine import SchemaSnapshot, TableSnapshot

AnyJson = Annotated[object, WithJsonSchema({})]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Id = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]


def renamed(name: str) -> Any:  # a field's default has no type of its own
    """An optional member whose Wire name cannot be the attribute's."""
    return Field(None, validation_alias=name, serialization_alias=name)


class Answer(BaseModel):
    """A JSON object of an answer; members that are None are left out."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, alias_generator=to_camel)

    def to_json(self) -> dict[str, object]:
        """By the names of the Wire; only members are left out, never a null inside a map."""
        return {
            str(info.validation_alias or name): _as_json(value)
            for name, info in type(self).model_fields.items()
            if (value := getattr(self, name)) is not None
        }


def _as_json(value: object) -> object:
    if isinstance(value, Answer):
        return value.to_json()
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return value


class SslRequest(Part):
    """A member that is not declared is refused: misspelt, it would mean "without TLS"."""

    # let in, so that the refusal names them among the other invalid fields
    model_config = ConfigDict(extra="allow")

    mode: str | None = None
    ca: str | None = Field(None, repr=False)
    cert: str | None = Field(None, repr=False)
    key: str | None = Field(None, repr=False)


class ConnectionRequest(Part):
    """Members that are not declared are not looked at, but for those of ``ssl``."""

    config_name: str | None = None
    type: str | None = None
    host: str | None = None
    port: int | None = None
    database_name: str | None = None
    default_schema: str | None = Field(
        None, validation_alias="schema", serialization_alias="schema"
    )
    user_name: str | None = None
    password: str | None = Field(None, repr=False)
    ssl: SslRequest | None = None
    metadata: dict[str, AnyJson] | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing is present; an empty ``ssl`` counts as nothing."""
        return not (self.model_fields_set - {"ssl"}) and (
            self.ssl is None or not self.ssl.model_fields_set
        )

    @property
    def unknown_ssl_members(self) -> list[str]:
        return sorted(self.ssl.model_extra or ()) if self.ssl is not None else []

    def tls_input(self) -> TlsInput | None:
        """None where nothing is given."""
        if self.ssl is None or not self.ssl.model_fields_set:
            return None
        return TlsInput(mode=self.ssl.mode, ca=self.ssl.ca, cert=self.ssl.cert, key=self.ssl.key)


class CreateConnectionRequest(ConnectionRequest):
    model_config = ConfigDict(json_schema_extra=create_connection_schema)

    def to_command(self) -> NewConnection:
        return NewConnection(
            config_name=self.config_name or "",
            type=self.type or "",
            host=self.host or "",
            port=self.port or 0,
            database_name=self.database_name or "",
            schema=self.default_schema,
            username=self.user_name or "",
            password=self.password or "",
            tls=self.tls_input(),
            metadata=cast("JsonObject", self.metadata or {}),
        )


class PatchConnectionRequest(ConnectionRequest):
    """What is left out, or null, stays as it is; but ``"ssl": null`` takes TLS settings away."""

    model_config = ConfigDict(json_schema_extra=patch_connection_schema)

    _removes_tls: bool = PrivateAttr(False)

    @model_validator(mode="wrap")
    @classmethod
    def _see_removed_tls(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        read = handler(value)
        sent = cls.by_declared_name(value) if isinstance(value, Mapping) else {}
        read._removes_tls = "ssl" in sent and sent["ssl"] is None
        return read

    @property
    def is_empty(self) -> bool:
        return super().is_empty and not self._removes_tls

    def to_command(self) -> ConnectionChange:
        return ConnectionChange(
            config_name=self.config_name,
            type=self.type,
            host=self.host,
            port=self.port,
            database_name=self.database_name,
            schema=self.default_schema,
            username=self.user_name,
            password=self.password,
            tls=self.tls_input(),
            removes_tls=self._removes_tls,
            metadata=cast("JsonObject | None", self.metadata),
        )


class SslAnswer(Answer):
    mode: str | None = None


class ConnectionAnswer(Answer):
    """A connection without anything secret: no password, no key, no certificate."""

    id: Id
    product_name: str | None = None
    config_name: str
    type: str
    host: str
    port: int
    database_name: str
    default_schema: str | None = Field(
        None, validation_alias="schema", serialization_alias="schema"
    )
    user_name: str
    ssl: SslAnswer | None = None
    metadata: Mapping[str, AnyJson] | None = None
    created_at: Timestamp
    updated_at: Timestamp

    @classmethod
    def of(cls, connection: Connection) -> Self:
        tls = connection.tls
        return cls(
            id=str(connection.id),
            product_name=connection.product_name or None,
            config_name=connection.config_name,
            type=str(connection.type),
            host=connection.host,
            port=connection.port,
            database_name=connection.database_name,
            default_schema=connection.schema,
            user_name=connection.username,
            ssl=SslAnswer(mode=tls.mode or None) if tls is not None else None,
            metadata=dict(connection.metadata) or None,
            created_at=rfc3339(connection.created_at),
            updated_at=rfc3339(connection.updated_at),
        )


class ConnectionListAnswer(Answer):
    items: list[ConnectionAnswer]
    page: int
    limit: int
    total: int

    @classmethod
    def of(cls, found: ConnectionPage, *, page: int, limit: int) -> Self:
        items = [ConnectionAnswer.of(connection) for connection in found.items]
        return cls(items=items, page=page, limit=limit, total=found.total)


class ConnectionTestAnswer(Answer):
    status: str = "success"
    message: str = "Connection successful"
    latency_ms: int

    @classmethod
    def of(cls, reached: Reached) -> Self:
        return cls(latency_ms=reached.latency_ms)


class ColumnAnswer(Answer):
    """``type`` in the database's own words."""

    name: str
    type: str
    nullable: bool
    primary_key: bool


class TableAnswer(Answer):
    """``columns`` and ``estimated_rows`` where details were asked for and the source tells them;
    the columns stand in the table's own order."""

    name: str
    fields: list[str]
    columns: list[ColumnAnswer] | None = None
    estimated_rows: int | None = None

    @classmethod
    def of(cls, table: TableSnapshot, *, details: bool) -> Self:
        fields = sorted(table.fields, key=str.encode)
        if not details:
            return cls(name=table.name, fields=fields)
        columns = [
            ColumnAnswer(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                primary_key=column.primary_key,
            )
            for column in table.columns
        ]
        return cls(
            name=table.name,
            fields=fields,
            columns=columns or None,
            estimated_rows=table.estimated_rows,
        )


class ConnectionSchemaAnswer(Answer):
    id: Id
    config_name: str
    database_name: str
    type: str
    tables: list[TableAnswer]

    @classmethod
    def of(cls, connection: Connection, snapshot: SchemaSnapshot, *, details: bool) -> Self:
        """Tables and fields in byte order."""
        return cls(
            id=str(connection.id),
            config_name=connection.config_name,
            database_name=connection.database_name,
            type=str(connection.type),
            tables=[
                TableAnswer.of(table, details=details)
                for table in sorted(snapshot.tables, key=lambda table: table.name.encode())
            ],
        )
