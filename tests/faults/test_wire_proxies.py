"""The proxies themselves: what takes effect, what is said of it, and what is repeated."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import boto3
import pymongo
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from mypy_boto3_s3 import S3Client
from pymongo.errors import (
    AutoReconnect,
    NetworkTimeout,
    NotPrimaryError,
    PyMongoError,
    WriteConcernError,
)
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

from tests.faults.mongo_proxy import MongoWriteProxy, WriteFault
from tests.faults.proxy_thread import InItsThread, in_a_thread
from tests.faults.s3_proxy import WITHOUT_EFFECT, S3Call, S3Fault, S3FaultProxy
from tests.servers.addresses import S3Access

WRONG_ETAG = '"' + "0" * 32 + '"'


@pytest.fixture
def database(mongo_database: Callable[[], str]) -> str:
    return mongo_database()


@pytest.fixture
def mongo_proxy(mongo_uri: str, database: str) -> Iterator[InItsThread[MongoWriteProxy]]:
    place = urlsplit(mongo_uri)
    host, port = place.hostname or "127.0.0.1", place.port or 27017
    with in_a_thread(lambda: MongoWriteProxy(host, port, database=database)) as proxy:
        yield proxy


class Refusals(CommandListener):
    """Answers of commands that failed."""

    def __init__(self) -> None:
        self.answers: list[Mapping[str, Any]] = []

    def started(self, event: CommandStartedEvent) -> None:
        pass

    def succeeded(self, event: CommandSucceededEvent) -> None:
        pass

    def failed(self, event: CommandFailedEvent) -> None:
        self.answers.append(event.failure)


def failed_insert(
    proxy: InItsThread[MongoWriteProxy],
    database: str,
    fault: WriteFault,
    *,
    repeats: bool,
    listener: CommandListener | None = None,
) -> PyMongoError | None:
    """What the driver raises for the second of two inserts, if anything."""
    with pymongo.MongoClient[dict[str, Any]](
        "127.0.0.1",
        proxy.do(lambda it: it.port),
        replicaSet="fetcher-t",
        retryWrites=repeats,
        serverSelectionTimeoutMS=10_000,
        socketTimeoutMS=1_000,
        event_listeners=[listener] if listener else [],
    ) as client:
        documents = client[database]["documents"]
        proxy.do(lambda it: it.arm(None))
        documents.insert_one({"_id": 1})
        proxy.do(lambda it: it.arm(fault, "insert into `documents`"))
        try:
            documents.insert_one({"_id": 2})
        except PyMongoError as failure:
            return failure
    return None


def stored_ids(mongo_uri: str, database: str) -> list[int]:
    with pymongo.MongoClient[dict[str, Any]](mongo_uri) as client:
        return sorted(found["_id"] for found in client[database]["documents"].find())


@pytest.mark.parametrize(
    ("fault", "kind", "ids"),
    [
        (WriteFault.UNANSWERED, NetworkTimeout, [1, 2]),
        (WriteFault.CUT, AutoReconnect, [1, 2]),
        (WriteFault.NOT_PRIMARY, NotPrimaryError, [1]),
        (WriteFault.STEPPED_DOWN, WriteConcernError, [1, 2]),
    ],
)
def test_a_driver_that_may_not_repeat_is_told_of_the_fault_without_a_label(
    mongo_proxy: InItsThread[MongoWriteProxy],
    mongo_uri: str,
    database: str,
    fault: WriteFault,
    kind: type[PyMongoError],
    ids: list[int],
) -> None:
    failure = failed_insert(mongo_proxy, database, fault, repeats=False)
    assert type(failure) is kind
    assert failure.has_error_label("RetryableWriteError") is False
    assert stored_ids(mongo_uri, database) == ids
    assert mongo_proxy.do(lambda it: it.repeated) == 0


@pytest.mark.parametrize(
    ("fault", "repeated"),
    [
        (WriteFault.UNANSWERED, 1),
        (WriteFault.CUT, 1),
        (WriteFault.STEPPED_DOWN, 1),
    ],
)
def test_a_driver_that_may_repeat_does_so_and_the_write_is_carried_out_once(
    mongo_proxy: InItsThread[MongoWriteProxy],
    mongo_uri: str,
    database: str,
    fault: WriteFault,
    repeated: int,
) -> None:
    assert failed_insert(mongo_proxy, database, fault, repeats=True) is None
    assert stored_ids(mongo_uri, database) == [1, 2]
    assert mongo_proxy.do(lambda it: (it.repeated, len(it.writes))) == (repeated, 1)


def test_a_driver_that_may_repeat_is_told_so_by_who_is_not_primary(
    mongo_proxy: InItsThread[MongoWriteProxy], database: str
) -> None:
    refusals = Refusals()
    # Where it repeats it on the connection that was cut, it fails with that.
    failed_insert(mongo_proxy, database, WriteFault.NOT_PRIMARY, repeats=True, listener=refusals)
    first = refusals.answers[0]
    assert (first["code"], first["errorLabels"]) == (10107, ["RetryableWriteError"])
    assert first["topologyVersion"]["counter"] == 2
    assert mongo_proxy.do(lambda it: len(it.writes)) == 1


def test_a_put_takes_effect_or_not_as_the_fault_says(
    s3_access: S3Access, s3_bucket: Callable[[], str], s3_client: S3Client
) -> None:
    bucket, place = s3_bucket(), urlsplit(s3_access.endpoint)
    with in_a_thread(lambda: S3FaultProxy(place.hostname or "", place.port or 80)) as proxy:
        through = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{proxy.do(lambda it: it.port)}",
            aws_access_key_id=s3_access.access_key,
            aws_secret_access_key=s3_access.secret_key,
            region_name=s3_access.region,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )
        with closing(through):
            for fault in S3Fault:
                proxy.do(partial(S3FaultProxy.arm, call=S3Call.PUT, fault=fault, nth=2))
                put(through, bucket, f"{fault.name} before")
                etag = put(through, bucket, fault.name)
                assert proxy.do(lambda it: it.struck) == 1
                if fault not in UNFELT:
                    assert etag == (WRONG_ETAG if fault is S3Fault.WRONG_ETAG else None)
    keys = {each["Key"] for each in s3_client.list_objects_v2(Bucket=bucket)["Contents"]}
    assert {f"{fault.name} before" for fault in S3Fault} <= keys
    assert {fault for fault in S3Fault if fault.name in keys} == set(S3Fault) - WITHOUT_EFFECT


UNFELT = (S3Fault.DONE_TORN, S3Fault.ERROR_IN_200, S3Fault.DONE_ERROR_IN_200)
"""An answer to a put has no body: it cannot be torn, and an error in it is not looked for."""


def put(client: S3Client, bucket: str, key: str) -> str | None:
    """The ETag, or none where it failed."""
    try:
        return client.put_object(Bucket=bucket, Key=key, Body=b"b" * 100_000)["ETag"]
    except (BotoCoreError, ClientError):
        return None
