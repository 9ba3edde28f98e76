"""The fixtures against the running servers."""

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pymongo
import pytest
from mypy_boto3_s3 import S3Client
from redis import Redis

from tests.servers.addresses import S3Access, SqlAddress
from tests.servers.amqp_cleaning import BrokerError, delete
from tests.servers.vhosts import Vhost, control_command

pytestmark = pytest.mark.integration


def test_each_postgres_database_is_fresh_and_in_utf8(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    first, second = postgres_database(), postgres_database()
    assert first.database != second.database
    with psycopg.connect(first.conninfo) as connection:
        answer = connection.execute(
            "SELECT current_database(), pg_encoding_to_char(encoding)"
            " FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert answer == (first.database, "UTF8")


def test_postgres_dsn_names_the_same_server(postgres: SqlAddress, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        assert connection.info.port == postgres.port


def test_mariadb_greets(mariadb: SqlAddress) -> None:
    with socket.create_connection((mariadb.host, mariadb.port), timeout=5) as connection:
        assert b"MariaDB" in connection.recv(200)


def test_redis_answers(redis_url: str) -> None:
    with Redis.from_url(redis_url, socket_timeout=5) as client:
        assert client.ping() is True


def test_names_for_the_broker_are_unique_and_unused(
    amqp_url: str, amqp_name: Callable[[str], str]
) -> None:
    first, second = amqp_name("work"), amqp_name("work")
    assert first != second
    delete(amqp_url, [first])  # what doesn't exist is deleted without complaint


def test_a_refusing_broker_is_told(amqp_url: str) -> None:
    wrong_vhost = amqp_url.rsplit("/", 1)[0] + "/no-such-vhost"
    with pytest.raises(BrokerError, match="530"):
        delete(wrong_vhost, ["a"])


@pytest.mark.parametrize("suffix", ["", "/a b%2F#?é"])
def test_a_virtual_host_admits_its_user_and_nobody_elses(
    amqp_url: str, vhost: Callable[[str], Vhost], suffix: str
) -> None:
    place, other = vhost(suffix), vhost("")
    assert place.name.endswith(suffix)
    delete(place.url, ["a"])
    with pytest.raises(BrokerError, match="530"):
        delete(replace(place, name=other.name).url, ["a"])
    delete(amqp_url, ["a"])


def test_a_command_of_a_started_broker_comes_before_the_systems(tmp_path: Path) -> None:
    ours = tmp_path / "fetcher-services-x" / "broker" / "rabbitmqctl-5999"
    ours.parent.mkdir(parents=True)
    ours.touch()
    assert control_command({}, 5999, tmp_path) == str(ours)
    assert control_command({"FETCHER_TEST_RABBITMQCTL": "/x/ctl"}, 5999, tmp_path) == "/x/ctl"


def test_each_mongo_database_is_fresh(mongo_uri: str, mongo_database: Callable[[], str]) -> None:
    name = mongo_database()
    with pymongo.MongoClient[dict[str, object]](mongo_uri) as client:
        client[name]["c"].insert_one({"_id": 1})
        assert client[name]["c"].count_documents({}) == 1
        assert mongo_database() not in client.list_database_names()


def test_each_bucket_is_empty_and_a_full_one_is_removed(
    s3_client: S3Client, s3_bucket: Callable[[], str], s3_access: S3Access, s3_endpoint: str
) -> None:
    bucket = s3_bucket()
    assert s3_endpoint == s3_access.endpoint
    assert s3_client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    s3_client.put_object(Bucket=bucket, Key="a", Body=b"x")
    s3_client.create_multipart_upload(Bucket=bucket, Key="b")
