"""The S3 server that remembers little, asked by the usual client."""

from contextlib import closing
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from mypy_boto3_s3 import S3Client

from tests.servers.s3_sink import S3Sink, s3_sink


def client_of(sink: S3Sink) -> S3Client:
    client: S3Client = boto3.client(
        "s3",
        endpoint_url=sink.access.endpoint,
        aws_access_key_id=sink.access.access_key,
        aws_secret_access_key=sink.access.secret_key,
        region_name=sink.access.region,
        config=Config(s3={"addressing_style": "path"}),
    )
    return client


@pytest.mark.parametrize("keeps", [True, False])
def test_an_upload_in_parts_becomes_an_object_once_it_is_complete(
    tmp_path: Path, keeps: bool
) -> None:
    with s3_sink(tmp_path if keeps else None) as sink, closing(client_of(sink)) as client:
        upload = client.create_multipart_upload(Bucket="b", Key="a/b.json")["UploadId"]
        etags = [
            client.upload_part(
                Bucket="b", Key="a/b.json", UploadId=upload, PartNumber=number, Body=body
            )["ETag"]
            for number, body in ((1, b"one " * 1000), (2, b"two"))
        ]
        listed = client.list_multipart_uploads(Bucket="b", Prefix="a/")["Uploads"]
        assert [each["UploadId"] for each in listed] == [upload]
        assert sink.objects == {}
        client.complete_multipart_upload(
            Bucket="b",
            Key="a/b.json",
            UploadId=upload,
            MultipartUpload={
                "Parts": [{"PartNumber": number, "ETag": etags[number - 1]} for number in (1, 2)]
            },
        )
        assert client.head_object(Bucket="b", Key="a/b.json")["ContentLength"] == 4003
        assert sink.uploads == {}
        assert sink.content("a/b.json") == (b"one " * 1000 + b"two" if keeps else b"")


def test_what_was_aborted_or_deleted_is_gone(tmp_path: Path) -> None:
    with s3_sink(tmp_path) as sink, closing(client_of(sink)) as client:
        client.head_bucket(Bucket="b")
        client.put_object(Bucket="b", Key="k", Body=b"all of it")
        assert client.get_object(Bucket="b", Key="k")["Body"].read() == b"all of it"
        client.delete_object(Bucket="b", Key="k")
        upload = client.create_multipart_upload(Bucket="b", Key="k")["UploadId"]
        client.abort_multipart_upload(Bucket="b", Key="k", UploadId=upload)
        assert sink.uploads == {}
        with pytest.raises(ClientError, match="NoSuchKey"):
            client.get_object(Bucket="b", Key="k")
        with pytest.raises(ClientError, match="NoSuchUpload"):
            client.upload_part(Bucket="b", Key="k", UploadId=upload, PartNumber=1, Body=b"late")
