"""The bucket's rules: unfinished uploads are aborted, results expire."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from mypy_boto3_s3 import S3Client

from fetcher.adapters.s3.lifecycle import abort_rule, expiry_rule
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore, open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.topology import Finding, FindingStatus
from tests.servers.addresses import S3Access

pytestmark = pytest.mark.integration

NOW = datetime(2030, 12, 1, 12, tzinfo=UTC)
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
    assert (await lifecycle.settle(abort_rule("fx/"), create=False)).status is FindingStatus.MISSING
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [EXPIRY]}
    )
    assert (await lifecycle.settle(abort_rule("fx/"), create=False)).status is FindingStatus.MISSING
    assert (await lifecycle.settle(abort_rule("fx/"), create=True)).status is FindingStatus.CREATED
    assert {rule["ID"] for rule in rules(s3_client, bucket)} == {
        "expire",
        "fetcher-abort-unfinished-uploads",
    }
    for create in (False, True):
        assert (await lifecycle.settle(abort_rule("fx/"), create=create)).status is FindingStatus.OK
    assert len(rules(s3_client, bucket)) == 2
    assert (
        await lifecycle.settle(abort_rule("other/"), create=False)
    ).status is FindingStatus.MISSING


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
    unserving: Any = {**abort_rule("").document, **changed}
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [unserving]}
    )
    assert (
        await store.lifecycle().settle(abort_rule(""), create=False)
    ).status is FindingStatus.MISSING
    assert (
        await store.lifecycle().settle(abort_rule(""), create=True)
    ).status is FindingStatus.CREATED
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
        looked = await opened.lifecycle().settle(abort_rule(""), create=False)
        put = await opened.lifecycle().settle(abort_rule(""), create=True)
    for found in (looked, put):
        assert found.status is FindingStatus.MISSING
        assert found.details == ("there is no such bucket",)


async def test_results_expire_by_a_rule_that_touches_nothing_else(
    store: S3ObjectStore, s3_client: S3Client, bucket: str
) -> None:
    rule = expiry_rule("fx/", days=30, now=NOW)
    assert (await store.lifecycle().settle(rule, create=True)).status is FindingStatus.CREATED
    (put,) = rules(s3_client, bucket)
    assert put["Expiration"] == {"Days": 30}
    assert put["Filter"] == {"Prefix": "fx/external-data/"}
    assert (await store.lifecycle().settle(rule, create=False)).status is FindingStatus.OK
    shorter = expiry_rule("fx/", days=7, now=NOW)
    assert (await store.lifecycle().settle(shorter, create=False)).status is FindingStatus.MISSING
    assert (await store.lifecycle().settle(shorter, create=True)).status is FindingStatus.CREATED
    (put,) = rules(s3_client, bucket)
    assert put["Expiration"] == {"Days": 7}


async def test_our_own_rule_of_fewer_days_is_told_and_replaced(
    store: S3ObjectStore, s3_client: S3Client, bucket: str
) -> None:
    await store.lifecycle().settle(expiry_rule("fx/", days=30, now=NOW), create=True)
    longer = expiry_rule("fx/", days=31, now=NOW)
    looked = await store.lifecycle().settle(longer, create=False)
    assert looked.status is FindingStatus.DIFFERS
    assert looked.details == (
        "rule 'fetcher-expire-results' deletes results after 30 days: sooner than"
        " RESULT_RETENTION_DAYS; `fetcher topology declare --bucket` replaces it",
    )
    assert (await store.lifecycle().settle(longer, create=True)).status is FindingStatus.CREATED
    (put,) = rules(s3_client, bucket)
    assert put["Expiration"] == {"Days": 31}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"Filter": {"Prefix": ""}},
        {"Filter": {"Prefix": "fx/external-data/019"}},
        {"Expiration": {"Date": datetime(2031, 1, 1, tzinfo=UTC)}},
    ],
)
async def test_a_rule_that_deletes_results_before_their_time_is_told_and_left(
    store: S3ObjectStore, s3_client: S3Client, bucket: str, changed: dict[str, Any]
) -> None:
    early: Any = {**EXPIRY, **changed}
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [early]}
    )
    rule, kept = expiry_rule("fx/", days=31, now=NOW), "it is its owner's to change"
    looked = await store.lifecycle().settle(rule, create=False)
    assert looked.status is FindingStatus.DIFFERS
    (told,) = looked.details
    assert told.startswith("rule 'expire' deletes results ")
    assert told.endswith(f"sooner than RESULT_RETENTION_DAYS; {kept}")
    assert await store.lifecycle().settle(rule, create=True) == looked
    assert [rule["ID"] for rule in rules(s3_client, bucket)] == ["expire"]
    assert await store.lifecycle().expiring_results("fx/") == Finding(
        kind="bucket rule",
        name=f"{bucket}: results are kept",
        status=FindingStatus.ACCEPTED,
        details=(
            f"{told.partition(':')[0]}: their jobs do not tell that they are gone"
            " unless RESULT_RETENTION_DAYS is as short",
        ),
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"Status": "Disabled"},
        {"Filter": {"Prefix": "other/"}},
        {"Filter": {"And": {"Prefix": "fx/", "Tags": [{"Key": "a", "Value": "b"}]}}},
        {"Filter": {"Tag": {"Key": "a", "Value": "b"}}},
        {"Expiration": {"Days": 32}},
        {"Expiration": {"Date": datetime(2031, 1, 2, tzinfo=UTC)}},
        {"Expiration": {"ExpiredObjectDeleteMarker": True}},
    ],
)
async def test_a_rule_that_deletes_no_result_early_is_no_obstacle(
    store: S3ObjectStore, s3_client: S3Client, bucket: str, changed: dict[str, Any]
) -> None:
    other: Any = {**EXPIRY, **changed}
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [other]}
    )
    rule = expiry_rule("fx/", days=31, now=NOW)
    assert (await store.lifecycle().settle(rule, create=False)).status is FindingStatus.MISSING
    assert (await store.lifecycle().settle(rule, create=True)).status is FindingStatus.CREATED
    assert len(rules(s3_client, bucket)) == 2


async def test_somebody_elses_rule_over_the_whole_bucket_serves_as_well(
    store: S3ObjectStore, s3_client: S3Client, bucket: str
) -> None:
    s3_client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [EXPIRY]}
    )
    looked = await store.lifecycle().settle(expiry_rule("fx/", days=30, now=NOW), create=False)
    assert looked.status is FindingStatus.OK
    looked = await store.lifecycle().settle(expiry_rule("other/", days=30, now=NOW), create=False)
    assert looked.status is FindingStatus.MISSING
