"""An upload whose creation is cancelled on its way: it is aborted, by its name."""

import math
from dataclasses import dataclass, field

import trio

from fetcher.adapters.s3.multipart import S3Object
from fetcher.adapters.s3.upload import CREATE_SECONDS, PART_BYTES, UploadContext
from tests.unit.adapters.s3.fake_s3 import FakeS3Client


@dataclass(frozen=True, slots=True)
class SlowStore(S3Object):
    """Its list does not show yet what it is still making."""

    create_seconds: float = 0.0
    aborted: list[str] = field(default_factory=list)

    async def create_upload(self) -> tuple[str, bool]:
        await trio.sleep(self.create_seconds)
        return "the-upload", False

    async def abort_upload(self, upload_id: str) -> None:
        self.aborted.append(upload_id)

    async def unfinished_uploads(self) -> list[str]:
        return []


def a_store(*, create_seconds: float) -> SlowStore:
    return SlowStore(
        client=FakeS3Client(), bucket="results", key="key", create_seconds=create_seconds
    )


async def cancelled_while_it_creates(store: SlowStore) -> float:
    """After how many seconds it had ended."""
    start = trio.current_time()
    with trio.move_on_after(0.5) as scope:
        async with UploadContext(store) as upload:
            await upload.write(b"x" * PART_BYTES)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    return trio.current_time() - start


async def test_a_create_that_answers_in_time_is_aborted_by_its_name(
    autojump_clock: trio.abc.Clock,
) -> None:
    store = a_store(create_seconds=2.0)
    assert await cancelled_while_it_creates(store) == 2.0
    assert store.aborted == ["the-upload"]


async def test_a_create_that_hangs_is_given_up(autojump_clock: trio.abc.Clock) -> None:
    store = a_store(create_seconds=math.inf)
    assert await cancelled_while_it_creates(store) == 0.5 + CREATE_SECONDS
    assert store.aborted == []
