"""A cluster of the test's own on the test servers."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.e2e.cluster import Cluster
from tests.servers.addresses import S3Access, SqlAddress


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
