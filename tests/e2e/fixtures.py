"""A cluster of the test's own on the test servers."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pymysql  # type: ignore[import-untyped] # its stubs are no dependency
import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.tenancy import Tenancy
from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.tenant_manager import TenantManagerDouble
from tests.servers.vhosts import Vhost


@pytest.fixture
def cluster(
    tmp_path: Path,
    amqp_url: str,
    amqp_name: Callable[[str], str],
    mongo_uri: str,
    mongo_database: Callable[[], str],
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
) -> Cluster:
    return Cluster(
        folder=tmp_path,
        amqp_url=amqp_url,
        mongo_uri=mongo_uri,
        mongo_name=mongo_database(),
        s3=s3_access,
        bucket=s3_bucket(),
        work_queue=amqp_name("work"),
        exchange=amqp_name("events"),
        event_queue=amqp_name("subscriber"),
    )


@pytest.fixture
def shop(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    """A PostgreSQL database with a table of 1 000 orders."""
    address = postgres_database()
    with psycopg.connect(address.conninfo, autocommit=True) as database:
        database.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(12, 2), note text,"
            " placed_at timestamptz)"
        )
        database.execute(
            "INSERT INTO orders SELECT 9007199254740993 + n, n * 1.10, 'Größe ' || n,"
            " timestamptz '2026-03-14 09:26:53.5Z' FROM generate_series(1, 1000) AS n"
        )
    return address


@pytest.fixture
def tenancy(
    tmp_path: Path,
    tenant_manager: TenantManagerDouble,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    vhost: Callable[..., Vhost],
    redis_url: str,
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
) -> Tenancy:
    return Tenancy(
        folder=tmp_path,
        manager_double=tenant_manager,
        mongo_uri=mongo_uri,
        new_database=mongo_database,
        new_vhost=vhost,
        redis_url=redis_url,
        s3=s3_access,
        bucket=s3_bucket(),
    )


@pytest.fixture
def stock(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    """A MariaDB database with two items, and a user who needs a password."""
    name = f"stock_{secrets.token_hex(6)}"
    password = secrets.token_hex(8)
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password
    ) as admin:
        cursor = admin.cursor()
        try:
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"CREATE TABLE {name}.items (id BIGINT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {name}.items VALUES (1), (2)")
            admin.commit()
            cursor.execute(f"CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'")
            cursor.execute(f"CREATE USER '{name}'@'localhost' IDENTIFIED BY '{password}'")
            cursor.execute(f"GRANT SELECT ON {name}.* TO '{name}'@'%'")
            cursor.execute(f"GRANT SELECT ON {name}.* TO '{name}'@'localhost'")
            yield replace(mariadb, user=name, database=name, password=password)
        finally:
            cursor.execute(f"DROP USER IF EXISTS '{name}'@'%', '{name}'@'localhost'")
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
