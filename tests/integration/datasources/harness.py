"""Sources of tests: connection records, and a whole extraction through the Engine."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from fetcher.datasources.engines import RequestEngines, SourceSettings, open_source_engines
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher.domain.json_values import JsonObject
from fetcher_engine import ErrorCategory, ExtractionRequest, Limits, SourceNotes, TenantContext
from tests.servers.addresses import SqlAddress

TENANT = TenantContext.new("default")
LONG_AGO = datetime(2031, 1, 1, tzinfo=UTC)

Filters = Mapping[str, Mapping[str, Mapping[str, Sequence[object]]]]


def a_connection(
    *,
    source_type: SourceType = SourceType.POSTGRESQL,
    host: str = "",
    port: int = 0,
    database: str = "",
    user: str = "",
    password: str = "",
    schema: str | None = None,
    tls: TlsSettings | None = None,
    metadata: JsonObject | None = None,
) -> Connection:
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=source_type,
        host=host,
        port=port,
        database_name=database,
        username=user,
        password_encrypted=password,
        encryption_key_version="1",
        created_at=LONG_AGO,
        updated_at=LONG_AGO,
        schema=schema,
        tls=tls,
        metadata=metadata or {},
    )


def replacing(connection: Connection) -> Connection:
    """The same, with invalid text replaced."""
    return replace(connection, metadata={"invalidText": "replace"})


def connection_to(address: SqlAddress, *, schema: str | None = None) -> Connection:
    return a_connection(
        host=address.host,
        port=address.port,
        database=address.database,
        user=address.user,
        password=address.password,
        schema=schema,
    )


@contextmanager
def own_database(server: SqlAddress) -> Iterator[SqlAddress]:
    """An empty database on a PostgreSQL server, dropped at the end."""
    name = f"fetcher_t_{uuid4().hex[:12]}"
    run_sql(server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        yield replace(server, database=name)
    finally:
        run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def database_in(server: SqlAddress, encoding: str) -> Iterator[SqlAddress]:
    """An empty database on a PostgreSQL server in the encoding, dropped at the end."""
    name = f"fetcher_src_{uuid4().hex[:12]}"
    identifier = sql.Identifier(name)
    with psycopg.connect(server.conninfo, autocommit=True) as admin:
        admin.execute(
            sql.SQL(
                "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
            ).format(identifier, sql.Literal(encoding))
        )
        try:
            yield replace(server, database=name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


def run_sql(address: SqlAddress, *statements: str) -> None:
    with psycopg.connect(
        address.conninfo, autocommit=True, connect_timeout=10, client_encoding="UTF8"
    ) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@asynccontextmanager
async def engines(
    *, sqlite_folder: Path | None = None, keeps_sessions: bool = True, **settings: Any
) -> AsyncIterator[RequestEngines]:
    """Engines that take the stored text for the password."""
    source_settings = SourceSettings(
        decrypt=lambda stored, _: stored,
        limits=Limits().merged_over_defaults(),
        sqlite_folder=sqlite_folder,
        **settings,
    )
    if not keeps_sessions:
        yield RequestEngines(source_settings)
        return
    async with open_source_engines(source_settings) as opened:
        yield opened


def category_while_connecting(reason: str | None) -> ErrorCategory:
    """Of a failure before the session stands (spec datasources 5)."""
    if reason == "timeout":
        return ErrorCategory.TIMEOUT
    passing = {"driver_missing", "starting_up", "too_many_connections", "too_many_sessions"}
    return ErrorCategory.UNAVAILABLE if reason in passing else ErrorCategory.CONNECT


async def document(
    opened: RequestEngines,
    connection: Connection,
    fields: Mapping[str, Sequence[str]],
    *,
    filters: Filters | None = None,
    options: JobOptions | None = None,
) -> bytes:
    """The result document, as a worker would get it."""
    data, _ = await extraction(opened, connection, fields, filters=filters, options=options)
    return data


async def extraction(
    opened: RequestEngines,
    connection: Connection,
    fields: Mapping[str, Sequence[str]],
    *,
    filters: Filters | None = None,
    options: JobOptions | None = None,
) -> tuple[bytes, SourceNotes]:
    """The result document, and what the job is told of its source."""
    name = connection.config_name
    requested = {name: {table: tuple(columns) for table, columns in fields.items()}}
    wanted: Any = {name: filters} if filters else {}
    engine = opened.engine_for([connection], options or JobOptions(), requested, wanted)
    request = ExtractionRequest(mapped_fields={name: fields}, filters=wanted)
    plan = await engine.plan_extraction(TENANT, request)
    pieces: list[bytes] = []

    async def write(piece: bytes | memoryview) -> None:
        pieces.append(bytes(piece))

    summary = await engine.stream_extraction(plan, write)
    data = b"".join(pieces)
    assert summary.size_bytes == len(data)
    return data, summary.source_notes.get(name, SourceNotes())


def _refuse(constant: str) -> object:
    message = f"not JSON: {constant}"
    raise ValueError(message)


def parsed(data: bytes) -> dict[str, list[dict[str, Any]]]:
    """The rows by table; strict JSON, fractions exact."""
    whole = json.loads(data, parse_float=Decimal, parse_constant=_refuse)
    tables: dict[str, list[dict[str, Any]]] = whole["src"]
    return tables


async def rows_of(
    opened: RequestEngines,
    connection: Connection,
    table: str,
    fields: Sequence[str],
    *,
    where: Mapping[str, Mapping[str, Sequence[object]]] | None = None,
    options: JobOptions | None = None,
) -> list[dict[str, Any]]:
    """The rows of one table, filtered."""
    data = await document(
        opened,
        connection,
        {table: fields},
        filters={table: where} if where else None,
        options=options,
    )
    return parsed(data)[table]
