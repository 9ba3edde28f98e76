"""Where results lie, and what may be left there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mypy_boto3_s3 import S3Client

from tests.hygiene.remains import files_below


class ResultPlace(Protocol):
    def keys(self) -> set[str]:
        """Of the objects that are visible."""

    def unfinished(self) -> set[str]:
        """Uploads that were begun and neither completed nor given up."""

    def read(self, key: str) -> bytes: ...

    def empty(self) -> None: ...


@dataclass(frozen=True)
class ObjectFolder:
    path: Path

    def keys(self) -> set[str]:
        return {name for name in files_below(self.path) if not name.startswith(".uploads/")}

    def unfinished(self) -> set[str]:
        return files_below(self.path / ".uploads")

    def read(self, key: str) -> bytes:
        return (self.path / key).read_bytes()

    def empty(self) -> None:
        """Each job has a folder of its own."""


@dataclass(frozen=True)
class Bucket:
    client: S3Client
    name: str
    settings: Mapping[str, object]

    def keys(self) -> set[str]:
        listed = self.client.list_objects_v2(Bucket=self.name)
        return {item["Key"] for item in listed.get("Contents", ())}

    def unfinished(self) -> set[str]:
        listed = self.client.list_multipart_uploads(Bucket=self.name)
        return {item["Key"] for item in listed.get("Uploads", ())}

    def read(self, key: str) -> bytes:
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def empty(self) -> None:
        for key in self.keys():
            self.client.delete_object(Bucket=self.name, Key=key)
