"""Fixtures for the test servers. A missing server fails its tests: nothing is skipped silently."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import boto3
import psycopg
import pymongo
import pytest
from botocore.config import Config
from mypy_boto3_s3 import S3Client
from psycopg import sql

from tests.servers import amqp_cleaning, vhosts
from tests.servers.addresses import (
    S3Access,
    ServerMissingError,
    SqlAddress,
    mariadb_address,
    postgres_address,
    read_settings,
    s3_address,
    url_of,
)
from tests.servers.tenant_manager import TenantManagerDouble, tenant_manager_double

T = TypeVar("T")


def _or_fail(find: Callable[[dict[str, str]], T]) -> T:
    try:
        return find(read_settings())
    except ServerMissingError as missing:
        text = str(missing)
    pytest.fail(text, pytrace=False)


def _fresh(prefix: str = "fetcher_t_") -> str:
    return f"{prefix}{secrets.token_hex(6)}"


@pytest.fixture(scope="session")
def postgres() -> SqlAddress:
    """The PostgreSQL server, as a user who may create databases."""
    return _or_fail(postgres_address)


@pytest.fixture(scope="session")
def postgres_dsn(postgres: SqlAddress) -> str:
    """The same as a connection string of libpq."""
    return postgres.conninfo


@pytest.fixture
def postgres_database(postgres: SqlAddress) -> Iterator[Callable[[], SqlAddress]]:
    """A factory of empty databases, each dropped (whoever is still in it) after the test."""
    with psycopg.connect(postgres.conninfo, autocommit=True, connect_timeout=10) as admin:
        made: list[str] = []

        def create() -> SqlAddress:
            name = _fresh()
            admin.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                    sql.Identifier(name)
                )
            )
            made.append(name)
            return replace(postgres, database=name)

        try:
            yield create
        finally:
            for name in made:
                admin.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
                )


@pytest.fixture(scope="session")
def mariadb() -> SqlAddress:
    """The MariaDB server, as a user who may create databases."""
    return _or_fail(mariadb_address)


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The Redis server. It may be shared: use keys under a prefix of your own."""
    return _or_fail(lambda settings: url_of(settings, "FETCHER_TEST_REDIS_URL", default_port=6379))


@pytest.fixture(scope="session")
def amqp_url() -> str:
    """The RabbitMQ broker. It may be shared: take every name from ``amqp_name``."""
    return _or_fail(lambda settings: url_of(settings, "FETCHER_TEST_AMQP_URL", default_port=5672))


@pytest.fixture
def amqp_name(amqp_url: str) -> Iterator[Callable[[str], str]]:
    """A factory of unique names for queues and exchanges: ``amqp_name("work")``.

    After the test the queue and the exchange of each name are deleted, if they exist.
    """
    names: list[str] = []

    def name(purpose: str) -> str:
        names.append(_fresh(f"fetcher.t.{purpose}."))
        return names[-1]

    yield name
    if names:
        amqp_cleaning.delete(amqp_url, names)


@pytest.fixture
def tenant_manager(tmp_path: Path) -> Iterator[TenantManagerDouble]:
    """A Tenant Manager without tenants, a process of its own until the test ends."""
    with tenant_manager_double(tmp_path) as double:
        yield double


@pytest.fixture
def rabbitmqctl(amqp_url: str) -> str:
    """The broker's own command, for what AMQP has no words for."""
    port = urlsplit(amqp_url).port or 5672
    return _or_fail(lambda settings: vhosts.control_command(settings, port))


@pytest.fixture
def vhost(amqp_url: str, rabbitmqctl: str) -> Iterator[Callable[..., vhosts.Vhost]]:
    """A factory of virtual hosts with a user each: ``vhost()``, ``vhost(" ends / with this")``.

    They are removed after the test with all that lies in them, whoever is still connected.
    """
    made: list[vhosts.Vhost] = []

    def create(suffix: str = "") -> vhosts.Vhost:
        name = _fresh("fetcher-t-")
        place = vhosts.place_of(
            amqp_url, name=f"{name}{suffix}", user=name, password=secrets.token_hex(8)
        )
        made.append(place)
        vhosts.make(rabbitmqctl, [place])
        return place

    yield create
    if made:
        vhosts.remove(rabbitmqctl, made)


@pytest.fixture(scope="session")
def mongo_uri() -> str:
    """The server that speaks MongoDB's protocol."""
    return _or_fail(lambda settings: url_of(settings, "FETCHER_TEST_MONGO_URI", default_port=27017))


@pytest.fixture
def mongo_database(mongo_uri: str) -> Iterator[Callable[[], str]]:
    """A factory of fresh database names, each dropped after the test."""
    names: list[str] = []

    def name() -> str:
        names.append(_fresh())
        return names[-1]

    yield name
    if names:
        with pymongo.MongoClient[dict[str, object]](
            mongo_uri, serverSelectionTimeoutMS=10_000
        ) as client:
            for made in names:
                client.drop_database(made)


@pytest.fixture(scope="session")
def s3_access() -> S3Access:
    """The S3 server with keys that it accepts."""
    return _or_fail(s3_address)


@pytest.fixture(scope="session")
def s3_endpoint(s3_access: S3Access) -> str:
    """Its URL."""
    return s3_access.endpoint


@pytest.fixture
def s3_client(s3_access: S3Access) -> Iterator[S3Client]:
    """A blocking client, for arranging and looking."""
    client = boto3.client(
        "s3",
        endpoint_url=s3_access.endpoint,
        aws_access_key_id=s3_access.access_key,
        aws_secret_access_key=s3_access.secret_key,
        region_name=s3_access.region,
        config=Config(connect_timeout=5, read_timeout=30, s3={"addressing_style": "path"}),
    )
    with closing(client):
        yield client


@pytest.fixture
def s3_bucket(s3_client: S3Client) -> Iterator[Callable[[], str]]:
    """A factory of empty buckets, each removed with its objects and uploads after the test."""
    with ExitStack() as cleaning:

        def create() -> str:
            bucket = _fresh("fetcher-t-")
            s3_client.create_bucket(Bucket=bucket)
            cleaning.callback(_remove_bucket, s3_client, bucket)
            return bucket

        yield create


def _remove_bucket(client: S3Client, bucket: str) -> None:
    for upload in client.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for found in page.get("Contents", []):
            client.delete_object(Bucket=bucket, Key=found["Key"])
    client.delete_bucket(Bucket=bucket)
