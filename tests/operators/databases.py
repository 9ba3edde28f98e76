"""The rows of :mod:`tests.operators.rows` in the databases that run here."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo

from fetcher.domain.connections import SourceType
from tests.integration.datasources import mariadb
from tests.integration.datasources.harness import run_sql
from tests.operators import layouts
from tests.operators.rows import TABLE
from tests.servers.addresses import SqlAddress

PASSWORD = "of-the-tests"


def fill_postgres(address: SqlAddress) -> Mapping[str, object]:
    """The body that registers it."""
    layout = layouts.POSTGRESQL
    run_sql(address, layout.create(), *layout.inserts())
    return {"type": SourceType.POSTGRESQL, **_place(address)}


@contextmanager
def filled_mariadb(server: SqlAddress) -> Iterator[Mapping[str, object]]:
    """The same, read by a user of its own who may do nothing else."""
    layout = layouts.MYSQL
    reader = f"fetcher_reader_{uuid4().hex[:8]}"
    zone = "SET time_zone = '+00:00'"
    with mariadb.own_database(server) as own:
        mariadb.run_sql(own, zone, layout.create(), *layout.inserts())
        mariadb.run_sql(
            own,
            f"CREATE USER {reader}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT SELECT ON {own.database}.* TO {reader}@'%'",
        )
        try:
            place = _place(replace(own, user=reader, password=PASSWORD))
            yield {"type": SourceType.MYSQL, **place}
        finally:
            mariadb.run_sql(server, f"DROP USER {reader}@'%'")


def fill_mongo(address: SqlAddress) -> Mapping[str, object]:
    with pymongo.MongoClient[dict[str, Any]](
        address.host,
        address.port,
        username=address.user,
        password=address.password,
        serverSelectionTimeoutMS=10_000,
    ) as client:
        client[address.database][TABLE].insert_many(layouts.documents())
    return {"type": SourceType.MONGODB, **_place(address)}


def fill_sqlite(path: Path) -> Mapping[str, object]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in (layouts.SQLITE.create(), *layouts.SQLITE.inserts()):
            connection.execute(statement)
    return {"type": SourceType.SQLITE, "databaseName": path.name}


def _place(address: SqlAddress) -> Mapping[str, object]:
    return {
        "host": address.host,
        "port": address.port,
        "databaseName": address.database,
        "userName": address.user,
        "password": address.password or "none",
    }


@contextmanager
def own_postgres(server: SqlAddress) -> Iterator[SqlAddress]:
    """A fresh database in UTF-8, dropped at the end."""
    address = replace(server, database=f"fetcher_src_{uuid4().hex[:12]}")
    run_sql(server, f"CREATE DATABASE {address.database} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        yield address
    finally:
        run_sql(server, f"DROP DATABASE {address.database} WITH (FORCE)")
