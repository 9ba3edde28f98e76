"""Stored results for the command line: beside a running service, without its lock."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import trio

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.adapters.local.object_folder import FolderObjectStore
from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.bootstrap.stores import open_object_store, open_record_store
from fetcher.crypto.keys import UnknownKeyVersion
from fetcher.crypto.opener import OpenedResult, ResultOpener, ResultRejected
from fetcher.domain.errors import FetcherError, ObjectNotFound, PortError, StartRefused
from fetcher.domain.ids import JobId
from fetcher.ports import ObjectStore
from fetcher.settings import Settings

KNOWN_FAILURES = (FetcherError, PortError, ResultRejected, UnknownKeyVersion, StartRefused)

JOB_IN_KEY = re.compile(r"external-data/([0-9a-f-]{36})(?:\.\d+)?\.json$")


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    hmac: str
    size_bytes: int
    key_version: str = ""
    """Empty: the keys in use."""


class ResultUnknown(FetcherError):
    def __init__(self, key: str) -> None:
        super().__init__(
            "FET-1001",
            "Entity Not Found",
            f"no job or event names a result under {key}: a completed job shows its key as"
            " resultPath, like external-data/<job id>.json",
        )


async def fetch_result(
    settings: Settings, key: str, expected: ExpectedResult | None = None
) -> OpenedResult:
    """Fetch, verify and decrypt; what to expect comes from the event or the job's record.

    Raise ResultUnknown, PortError, ResultRejected, UnknownKeyVersion or StartRefused.
    """
    folder = DataFolder(settings.fetcher_data_dir) if settings.needs_data_folder else None

    async def fetch() -> OpenedResult:
        wanted = expected or await expected_result(settings, key, folder)
        return await opened_result(settings, key, wanted, folder)

    return await in_room(KNOWN_FAILURES, fetch)


async def opened_result(
    settings: Settings, key: str, expected: ExpectedResult, folder: DataFolder | None
) -> OpenedResult:
    keys = existing_key_ring(settings)
    key_set = keys.get(expected.key_version) if expected.key_version else keys.current
    opener = ResultOpener(
        storage_key=key_set.storage,
        hmac_key=key_set.external_hmac,
        expected_hmac=expected.hmac,
        expected_size=expected.size_bytes,
    )
    with ExitStack() as unfinished:
        unfinished.callback(opener.close)
        async with readable_objects(settings, folder) as objects, objects.read(key) as chunks:
            async for chunk in chunks:
                opener.feed(chunk)
        opened = opener.finish()
        unfinished.pop_all()
    return opened


@asynccontextmanager
async def readable_objects(
    settings: Settings, folder: DataFolder | None
) -> AsyncIterator[ObjectStore]:
    if settings.object_store_is_embedded and folder is not None:
        # Not opened: opening tidies up, and that belongs to the process that owns the folder.
        if not await trio.Path(folder.objects).is_dir():
            raise ObjectNotFound
        yield FolderObjectStore(folder.objects)
        return
    async with open_object_store(settings, folder) as opened:
        yield opened.objects


async def expected_result(
    settings: Settings, key: str, folder: DataFolder | None
) -> ExpectedResult:
    if settings.queue_is_embedded and folder is not None:
        return await expected_from_events(trio.Path(folder.events), key)
    return await expected_from_record(settings, key, folder)


async def expected_from_events(log: trio.Path, key: str) -> ExpectedResult:
    """The last event of the local log that names this key. Read line by line: it only grows."""
    expected: ExpectedResult | None = None
    if await log.exists():
        async with await log.open(encoding="utf-8", newline="\n") as lines:
            async for line in lines:
                # A line without its end is still being written.
                if key in line and line.endswith("\n"):
                    expected = expected_from_line(line, key) or expected
    if expected is None:
        raise ResultUnknown(key)
    return expected


def expected_from_line(line: str, key: str) -> ExpectedResult | None:
    result = json.loads(json.loads(line)["body"]).get("result", {})
    if result.get("path") != key:
        return None
    return ExpectedResult(result["hmac"], result["sizeBytes"], result["protection"]["keyVersion"])


async def expected_from_record(
    settings: Settings, key: str, folder: DataFolder | None
) -> ExpectedResult:
    named = JOB_IN_KEY.search(key)
    if named is not None:
        async with open_record_store(settings, folder, is_owner=False) as store:
            job = await store.records.jobs.get(JobId(UUID(named.group(1))))
        if job is not None and job.result is not None and job.result.path == key:
            facts = job.result
            return ExpectedResult(facts.hmac, facts.size_bytes, facts.key_version)
    raise ResultUnknown(key)
