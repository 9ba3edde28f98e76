"""Empty databases to be read by jobs, one of each kind that runs here."""

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from fetcher.domain.connections import SourceType
from tests.integration.datasources import mariadb
from tests.integration.datasources.mongo_server import make_users, running_server
from tests.operators import databases
from tests.servers.addresses import SqlAddress

READER: Final = "fetcher_reader"
READER_PASSWORD: Final = "of-the-tests"


class Kind(StrEnum):
    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"
    MONGODB = "mongodb"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """``sqlite_folder`` is the workers' ``DATASOURCE_SQLITE_DIR``."""

    postgres: SqlAddress
    mariadb: SqlAddress
    sqlite_folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSource:
    """``address`` is for whoever fills it; ``connection`` registers it."""

    kind: Kind
    address: SqlAddress | Path
    connection: Mapping[str, object]

    @property
    def name(self) -> str:
        return str(self.connection["configName"])

    @property
    def sql(self) -> SqlAddress:
        assert isinstance(self.address, SqlAddress)
        return self.address

    @property
    def file(self) -> Path:
        assert isinstance(self.address, Path)
        return self.address


@contextmanager
def own_source(kind: Kind, servers: Servers, *, name: str) -> Iterator[OwnSource]:
    """``name`` is its connection's. Dropped at the end, but for a file."""
    with _OPENED[kind](servers) as source:
        yield replace(source, connection={**source.connection, "configName": name})


@contextmanager
def _postgresql(servers: Servers) -> Iterator[OwnSource]:
    with databases.own_postgres(servers.postgres) as own:
        yield _of(Kind.POSTGRESQL, SourceType.POSTGRESQL, own, own)


@contextmanager
def _mariadb(servers: Servers) -> Iterator[OwnSource]:
    """Read by a user who may do nothing else."""
    reader = f"{READER}_{secrets.token_hex(4)}"
    with mariadb.own_database(servers.mariadb) as own:
        mariadb.run_sql(
            own,
            f"CREATE USER {reader}@'%' IDENTIFIED BY '{READER_PASSWORD}'",
            f"GRANT SELECT ON {own.database}.* TO {reader}@'%'",
        )
        try:
            read = replace(own, user=reader, password=READER_PASSWORD)
            yield _of(Kind.MARIADB, SourceType.MYSQL, own, read)
        finally:
            mariadb.run_sql(servers.mariadb, f"DROP USER {reader}@'%'")


@contextmanager
def _mongodb(servers: Servers) -> Iterator[OwnSource]:
    """On a server of its own, which asks for a password, as a connection must have one."""
    with tempfile.TemporaryDirectory(prefix="fetcher-mongodb-") as folder:
        with running_server(Path(folder), is_kept=True) as port:
            make_users(port, [(READER, READER_PASSWORD, "admin")])
        with running_server(Path(folder), auth=True) as port:
            own = SqlAddress(
                host="127.0.0.1",
                port=port,
                user=READER,
                password=READER_PASSWORD,
                database="sources",
            )
            yield _of(Kind.MONGODB, SourceType.MONGODB, own, own)


@contextmanager
def _sqlite(servers: Servers) -> Iterator[OwnSource]:
    file = servers.sqlite_folder / f"{secrets.token_hex(6)}.db"
    connection = {
        "type": SourceType.SQLITE,
        "databaseName": file.name,
    }
    yield OwnSource(kind=Kind.SQLITE, address=file, connection=connection)


_OPENED: Final = {
    Kind.POSTGRESQL: _postgresql,
    Kind.MARIADB: _mariadb,
    Kind.MONGODB: _mongodb,
    Kind.SQLITE: _sqlite,
}


def _of(kind: Kind, source_type: SourceType, own: SqlAddress, read: SqlAddress) -> OwnSource:
    connection = {
        "type": source_type,
        "host": read.host,
        "port": read.port,
        "databaseName": read.database,
        "userName": read.user,
        "password": read.password or "none",
    }
    return OwnSource(kind=kind, address=own, connection=connection)
