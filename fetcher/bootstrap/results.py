"""Stored results for the command line: beside a running service, without its lock."""

import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import trio

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.adapters.local.file_turnover import set_aside_files
from fetcher.adapters.local.object_folder import FolderObjectStore
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.command_places import CommandPlaces, open_places
from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.crypto.keys import PreviousKeyEnded, UnknownKeyVersion
from fetcher.crypto.opener import OpenedResult, ResultOpener, ResultRejected
from fetcher.domain.errors import FetcherError, ObjectNotFound, PortError, StartRefused
from fetcher.domain.ids import JobId
from fetcher.ports import ObjectStore

UNUSABLE_KEYS = (UnknownKeyVersion, PreviousKeyEnded)
KNOWN_FAILURES = (FetcherError, PortError, ResultRejected, *UNUSABLE_KEYS, StartRefused)

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
            " resultPath, like external-data/<job id>.json, with tenants below its tenant's id",
        )


async def fetch_result(
    target: CommandTarget, key: str, expected: ExpectedResult | None = None
) -> OpenedResult:
    """Fetch, verify and decrypt; what to expect comes from the event or the job's record.

    Raise ResultUnknown, PortError, ResultRejected, UnknownKeyVersion,
    PreviousKeyEnded or StartRefused.
    """
    settings = target.settings
    folder = DataFolder(settings.fetcher_data_dir) if settings.needs_data_folder else None

    async def fetch() -> OpenedResult:
        async with open_places(target) as places:
            wanted = expected or await expected_result(places, key, folder)
            return await opened_result(places, key, wanted, folder)

    return await in_room(KNOWN_FAILURES, fetch)


async def opened_result(
    places: CommandPlaces, key: str, expected: ExpectedResult, folder: DataFolder | None
) -> OpenedResult:
    keys = existing_key_ring(places.settings)
    key_set = keys.get_verifying(expected.key_version or keys.version, now=utc_now())
    opener = ResultOpener(
        storage_key=key_set.storage,
        hmac_key=key_set.external_hmac,
        expected_hmac=expected.hmac,
        expected_size=expected.size_bytes,
    )
    with ExitStack() as unfinished:
        unfinished.callback(opener.close)
        async with readable_objects(places, folder) as objects, objects.read(key) as chunks:
            async for chunk in chunks:
                opener.feed(chunk)
        opened = opener.finish()
        unfinished.pop_all()
    return opened


@asynccontextmanager
async def readable_objects(
    places: CommandPlaces, folder: DataFolder | None
) -> AsyncIterator[ObjectStore]:
    if places.settings.object_store_is_embedded and folder is not None:
        # Not opened: opening tidies up, and that belongs to the process that owns the folder.
        if not await trio.Path(folder.objects).is_dir():
            raise ObjectNotFound
        yield FolderObjectStore(folder.objects)
        return
    async with places.objects(folder) as opened:
        yield opened.objects


async def expected_result(
    places: CommandPlaces, key: str, folder: DataFolder | None
) -> ExpectedResult:
    settings = places.settings
    if settings.queue_is_embedded and folder is not None:
        with suppress(ResultUnknown):
            return await expected_from_events(folder.events, key)
        if settings.record_store_is_embedded and not await trio.Path(folder.database).exists():
            raise ResultUnknown(key)
    return await expected_from_record(places, key, folder)


async def expected_from_events(log: Path, key: str) -> ExpectedResult:
    """The last event that names this key, of the local log and of what was set aside of it."""
    expected: ExpectedResult | None = None
    async with AsyncExitStack() as opened:
        # Opened before the others are listed: it may be set aside at any time. Between that and the
        # next line there is none of its name.
        with suppress(FileNotFoundError):
            newest = await opened.enter_async_context(
                await trio.Path(log).open(encoding="utf-8", newline="\n")
            )
            expected = await last_expected(newest, key)
        for path in reversed(set_aside_files(log)) if expected is None else ():
            # The oldest may be removed meanwhile.
            with suppress(FileNotFoundError):
                async with await trio.Path(path).open(encoding="utf-8", newline="\n") as older:
                    expected = await last_expected(older, key)
            if expected is not None:
                break
    if expected is None:
        raise ResultUnknown(key)
    return expected


async def last_expected(lines: AsyncIterable[str], key: str) -> ExpectedResult | None:
    expected: ExpectedResult | None = None
    async for line in lines:
        # A line without its end is still being written.
        if key in line and line.endswith("\n"):
            expected = expected_from_line(line, key) or expected
    return expected


def expected_from_line(line: str, key: str) -> ExpectedResult | None:
    result = json.loads(json.loads(line)["body"]).get("result", {})
    if result.get("path") != key:
        return None
    return ExpectedResult(result["hmac"], result["sizeBytes"], result["protection"]["keyVersion"])


async def expected_from_record(
    places: CommandPlaces, key: str, folder: DataFolder | None
) -> ExpectedResult:
    named = JOB_IN_KEY.search(key)
    if named is not None:
        async with places.records(folder) as records:
            job = await records.jobs.get(JobId(UUID(named.group(1))))
        if job is not None and job.result is not None and job.result.path == key:
            facts = job.result
            return ExpectedResult(facts.hmac, facts.size_bytes, facts.key_version)
    raise ResultUnknown(key)
