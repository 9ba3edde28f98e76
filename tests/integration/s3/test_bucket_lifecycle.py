"""The bucket's rule that aborts unfinished uploads."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mypy_boto3_s3 import S3Client

from fetcher.adapters.s3.lifecycle import abort_rule
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore, open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.topology import FindingStatus
from tests.servers.addresses import S3Access

pytestmark = pytest.mark.integration

EXPIRY: Any = {
    "ID": "expire",
    "Status": "Enabled",
    "Filter": {"Prefix": "fx/"},
    "Expiration": {"Days": 30},
}


@pytest.fixture
def bucket(s3_bucket: Callable[[], str]) -> str:
    return s3_bucket()


@pytest.fixture
async def store(s3_access: S3Access, bucket: str) -> AsyncIterator[S3ObjectStore]:
    location = S3Location(
        bucket=bucket,
        endpoint=s3_access.endpoint,
        region=s3_access.region,
        access_key_id=s3_access.access_key,
        secret_key=s3_access.secret_key,
        path_style=True,
    )
    async with open_asyncio(pytest.fail), open_s3(location) as opened:
        yield opened


def rules(client: S3Client, bucket: str) -> list[Any]:
    return list(client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"])


async def test_the_rule_is_put_beside_the_others_and_found_then(
    store: S3ObjectStore, s3_client: S3Client, bucket: str
) -> None:
    lifecycle = store.lifecycle()
    assert (await lifecycle.settle("fx/", create=False)).status is FindingStatus.MISSING
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [EXPIRY]}
    )
    assert (await lifecycle.settle("fx/", create=False)).status is FindingStatus.MISSING
    assert (await lifecycle.settle("fx/", create=True)).status is FindingStatus.CREATED
    assert {rule["ID"] for rule in rules(s3_client, bucket)} == {
        "expire",
        "fetcher-abort-unfinished-uploads",
    }
    for create in (False, True):
        assert (await lifecycle.settle("fx/", create=create)).status is FindingStatus.OK
    assert len(rules(s3_client, bucket)) == 2
    assert (await lifecycle.settle("other/", create=False)).status is FindingStatus.MISSING


@pytest.mark.parametrize(
    "changed",
    [
        {"Status": "Disabled"},
        {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        {"Filter": {"And": {"Prefix": "", "Tags": [{"Key": "a", "Value": "b"}]}}},
    ],
)
async def test_a_rule_that_does_not_serve_is_replaced(
    store: S3ObjectStore, s3_client: S3Client, bucket: str, changed: dict[str, Any]
) -> None:
    unserving: Any = {**abort_rule(""), **changed}
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [unserving]}
    )
    assert (await store.lifecycle().settle("", create=False)).status is FindingStatus.MISSING
    assert (await store.lifecycle().settle("", create=True)).status is FindingStatus.CREATED
    (rule,) = rules(s3_client, bucket)
    assert (rule["Status"], rule["AbortIncompleteMultipartUpload"]) == (
        "Enabled",
        {"DaysAfterInitiation": 1},
    )


async def test_a_bucket_that_is_missing_is_told(s3_access: S3Access) -> None:
    location = S3Location(
        bucket="fetcher-t-there-is-none",
        endpoint=s3_access.endpoint,
        access_key_id=s3_access.access_key,
        secret_key=s3_access.secret_key,
        path_style=True,
    )
    async with open_asyncio(pytest.fail), open_s3(location) as opened:
        looked = await opened.lifecycle().settle("", create=False)
        put = await opened.lifecycle().settle("", create=True)
    assert looked.status is FindingStatus.UNCHECKED
    assert put.status is FindingStatus.REFUSED
    assert put.details == ("the store does not tell or take rules: bucket not found",)
