"""Spec worker-and-events 12.7, rows O1 and O2."""

import pytest

from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import StartRefused


def test_a_bucket_is_required() -> None:
    with pytest.raises(StartRefused) as caught:
        S3Location(bucket="")
    assert caught.value.problems == ("bucket name is required (set OBJECT_STORAGE_BUCKET)",)


@pytest.mark.parametrize(("key_id", "secret"), [("id", ""), ("", "secret")])
def test_one_key_without_the_other_is_refused(key_id: str, secret: str) -> None:
    with pytest.raises(StartRefused, match="OBJECT_STORAGE_SECRET_KEY: set both or neither"):
        S3Location(bucket="b", access_key_id=key_id, secret_key=secret)


def test_a_blank_region_is_the_default_one() -> None:
    assert S3Location(bucket="b", region="").region == "us-east-1"


@pytest.mark.parametrize(
    ("endpoint", "tls"),
    [("", True), ("https://store", True), ("http://store", False), ("HTTP://store", False)],
)
def test_the_scheme_of_the_endpoint_decides_about_tls(endpoint: str, tls: bool) -> None:
    assert S3Location(bucket="b", endpoint=endpoint).tls is tls


def test_the_secret_key_is_not_in_the_repr() -> None:
    location = S3Location(bucket="b", access_key_id="id", secret_key="canary-secret")
    assert "canary-secret" not in repr(location)


async def test_an_endpoint_that_is_no_address_refuses_the_start_without_repeating_it() -> None:
    location = S3Location(bucket="b", endpoint="user:canary-secret@store")
    async with open_asyncio(pytest.fail):
        with pytest.raises(StartRefused, match="OBJECT_STORAGE_ENDPOINT") as caught:
            async with open_s3(location):
                pytest.fail("it was opened")
    assert "canary-secret" not in str(caught.value)
    assert caught.value.__context__ is None
