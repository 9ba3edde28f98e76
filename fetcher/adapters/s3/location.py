"""Which bucket, where, and who we are there (spec configuration 2.5)."""

from dataclasses import dataclass, field
from typing import Final

from fetcher.domain.errors import StartRefused

DEFAULT_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    """``endpoint`` blank is AWS itself; both keys blank is the ambient chain of credentials.

    Raises StartRefused for a blank bucket and for one key without the other.
    """

    bucket: str
    endpoint: str = ""
    region: str = DEFAULT_REGION
    access_key_id: str = ""
    secret_key: str = field(default="", repr=False)
    path_style: bool = False

    def __post_init__(self) -> None:
        problems = []
        if not self.bucket:
            problems.append("bucket name is required (set OBJECT_STORAGE_BUCKET)")
        if bool(self.access_key_id) != bool(self.secret_key):
            problems.append(
                "OBJECT_STORAGE_ACCESS_KEY_ID and OBJECT_STORAGE_SECRET_KEY: set both or neither"
            )
        if problems:
            raise StartRefused(problems)
        if not self.region:
            object.__setattr__(self, "region", DEFAULT_REGION)

    @property
    def tls(self) -> bool:
        return not self.endpoint.lower().startswith("http://")
