"""Every object store, behind the same fixture."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fetcher.adapters.local.object_folder import open_object_folder
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.adapters.tenant_objects import TenantObjects
from fetcher.bridge import open_asyncio
from fetcher.ports import ObjectStore
from tests.contract.objects.below import Below
from tests.servers.addresses import S3Access

TENANT_PREFIX = "results/t1/"


@pytest.fixture(params=["folder", "s3"])
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def s3_location(s3_access: S3Access, s3_bucket: Callable[[], str]) -> S3Location:
    return S3Location(
        bucket=s3_bucket(),
        endpoint=s3_access.endpoint,
        region=s3_access.region,
        access_key_id=s3_access.access_key,
        secret_key=s3_access.secret_key,
        path_style=True,
    )


@pytest.fixture
async def plain_store(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[ObjectStore]:
    if store_kind == "folder":
        async with open_object_folder(tmp_path / "objects") as folder:
            yield folder
    else:
        location = request.getfixturevalue("s3_location")
        async with open_asyncio(pytest.fail), open_s3(location) as s3:
            yield s3


@pytest.fixture(params=["whole", "tenant"])
def store(plain_store: ObjectStore, request: pytest.FixtureRequest) -> ObjectStore:
    """A whole store, or a tenant's part of one."""
    if request.param == "whole":
        return plain_store
    return Below(TenantObjects(plain_store, TENANT_PREFIX), TENANT_PREFIX)


@pytest.fixture
def unfinished(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], list[str]]:
    """What uploads have left behind in the store, seen from outside."""
    if store_kind == "folder":
        return lambda: [path.name for path in (tmp_path / "objects" / ".uploads").iterdir()]
    client = request.getfixturevalue("s3_client")
    bucket = request.getfixturevalue("s3_location").bucket
    return lambda: [
        upload["Key"] for upload in client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    ]
