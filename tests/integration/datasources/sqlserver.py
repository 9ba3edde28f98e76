"""What the fake SQL Server answers to the connector's own statements."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fetcher.domain.connections import Connection, SourceType, TlsSettings
from tests.integration.datasources.harness import a_connection
from tests.servers.certificates import Identity
from tests.servers.tds import Answer, Column, Request, TdsServer

CATALOGUE = [
    *(Column("nvarchar") for _ in range(5)),
    *(Column("int") for _ in range(3)),
    Column("nvarchar"),
    Column("bigint"),
]
ROWS = 1200
"""What the server keeps of the rows of every table."""

Definition = tuple[str, str] | tuple[str, str, int]
"""A column's name, type, and bytes."""


def catalogue_rows(
    tables: Mapping[tuple[str, str], Sequence[Definition]], key: str = "id"
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for (schema, table), columns in tables.items():
        for name, type_name, *size in columns:
            base = None if type_name in ("geography", "geometry", "hierarchyid") else type_name
            collation = "Latin1_General_CI_AS" if "char" in type_name else None
            length = size[0] if size else 8
            own_key = int(name == key)
            facts = (schema, table, name, base, type_name, length, 1 - own_key, own_key, collation)
            rows.append((*facts, ROWS))
    return rows


def answering(
    tables: Mapping[tuple[str, str], Sequence[Definition]],
    answers: Mapping[str, Answer],
    *,
    snapshot: int = 0,
    level: int = 150,
) -> Callable[[Request], Answer | None]:
    """The catalogue of these tables; else the answer whose key the statement contains."""

    def answer(request: Request) -> Answer | None:
        if "sys.columns" in request.text:
            rows = catalogue_rows(tables)
            if "s.name = @P1" in request.text:
                rows = [row for row in rows if row[0] == request.values[0]]
            else:
                wanted = {str(value).lower() for value in request.values}
                rows = [row for row in rows if str(row[1]).lower() in wanted]
            if "sys.partitions" not in request.text:
                rows = [(*row[:-1], None) for row in rows]
            return Answer(columns=CATALOGUE, rows=rows)
        if "sys.databases" in request.text:
            return Answer(columns=[Column("int"), Column("int")], rows=[(snapshot, level)])
        if "BEGIN TRANSACTION" in request.text:
            return Answer(transaction=True)
        if request.text == "SELECT @@TRANCOUNT":
            return Answer(columns=[Column("int")], rows=[(0,)])
        return next((found for key, found in answers.items() if key in request.text), None)

    return answer


def source(
    server: TdsServer,
    *,
    host: str = "127.0.0.1",
    user: str = "app",
    password: str = "secret",  # noqa: S107 - the fake's
    database: str = "shop",
    tls: TlsSettings | None = None,
) -> Connection:
    return a_connection(
        source_type=SourceType.SQL_SERVER,
        host=host,
        port=server.port,
        database=database,
        user=user,
        password=password,
        tls=tls,
    )


def server_context(identity: Identity, folder: Path) -> ssl.SSLContext:
    pem = folder / "server.pem"
    pem.write_text(identity.key + identity.cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
