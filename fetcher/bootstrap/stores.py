"""The record store, the object store and the spool that the settings name."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from fetcher.adapters.local.data_folder import SPOOL_FOLDER, DataFolder
from fetcher.adapters.local.object_folder import open_object_folder
from fetcher.adapters.local.spool import FolderSpool
from fetcher.adapters.mongo.indexes import leave_indexes, prepare_indexes
from fetcher.adapters.mongo.records import open_mongo_records
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import open_s3
from fetcher.adapters.sqlite.records import open_sqlite_records
from fetcher.adapters.sqlite.recovery import RestartRecovery
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.ports import ObjectStore, Probe, RecordStore
from fetcher.settings import Settings, mongo_ca_pem, mongo_uri

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRecords:
    records: RecordStore
    probe: Probe
    connections: Callable[[], tuple[int, int]] | None = None
    """Connections to its server: open, and in use; None without a server."""
    server_version: Callable[[], Awaitable[str]] | None = None
    """Raises PortUnavailable; None without a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenObjects:
    objects: ObjectStore
    probe: Probe


@asynccontextmanager
async def open_record_store(
    settings: Settings, folder: DataFolder | None, *, is_owner: bool, only_looks: bool = False
) -> AsyncIterator[OpenRecords]:
    """SQLite in the data folder, or MongoDB (which may be away: it connects when it is used).

    ``is_owner`` says that we hold the folder's lock, so that every claim in it is void and taken
    back; beside a running service that would take its jobs away. With ``only_looks`` no index is
    made in MongoDB. Raise StartRefused.
    """
    if settings.record_store_is_embedded:
        assert folder is not None  # noqa: S101 - the caller opens it whenever a part is embedded
        async with open_sqlite_records(folder.database) as store:
            if is_owner:
                await take_back_claims(store.recovery)
            yield OpenRecords(records=store, probe=store.probe)
        return
    async with open_mongo_records(
        mongo_uri(settings),
        settings.mongo_name.lower(),
        allow_plaintext=settings.allow_insecure_tls,
        max_pool_size=settings.mongo_max_pool_size,
        ca_pem=mongo_ca_pem(settings),
        prepare=leave_indexes if only_looks else prepare_indexes,
    ) as records:
        yield OpenRecords(
            records=records,
            probe=records.probe,
            connections=records.connection_use,
            server_version=records.server_version,
        )


async def take_back_claims(recovery: RestartRecovery) -> None:
    try:
        recovered = await recovery.recover()
    except PortUnavailable as failure:
        problem = f"FETCHER_DATA_DIR: the record store cannot be written: {failure}"
    else:
        log.info(
            "records_recovered", undispatched=recovered.undispatched, expired=recovered.expired
        )
        return
    raise StartRefused([problem])


@asynccontextmanager
async def open_object_store(
    settings: Settings, folder: DataFolder | None
) -> AsyncIterator[OpenObjects]:
    """A folder in the data folder, or an S3 bucket."""
    if settings.object_store_is_embedded:
        assert folder is not None  # noqa: S101 - the caller opens it whenever a part is embedded
        async with open_object_folder(folder.objects) as objects:
            yield OpenObjects(objects=objects, probe=objects.probe())
        return
    if settings.object_storage_endpoint.lower().startswith("http://"):
        log.warning("plaintext_connection", feature="s3_tls", env_var="ALLOW_INSECURE_TLS")
    async with open_s3(s3_location(settings)) as bucket:
        yield OpenObjects(objects=bucket, probe=bucket.probe())


def s3_location(settings: Settings) -> S3Location:
    return S3Location(
        endpoint=settings.object_storage_endpoint,
        region=settings.object_storage_region,
        bucket=settings.object_storage_bucket,
        access_key_id=settings.object_storage_access_key_id.get_secret_value(),
        secret_key=settings.object_storage_secret_key.get_secret_value(),
        path_style=settings.object_storage_use_path_style,
    )


async def usable_spool(settings: Settings, folder: DataFolder | None) -> FolderSpool | None:
    """The spool in ``SPOOL_DIR``, in the data folder, or in the system's temporary folder.

    None where it is off, or where that last one cannot be written: without a spool a source ahead
    of its turn waits. Raise StartRefused for a folder that was asked for.
    """
    if not settings.spools:
        return None
    named = settings.spool_dir.strip()
    problem = ""
    try:
        spool = FolderSpool(spool_folder(named, folder))
        await spool.check()
    except FileNotFoundError:
        problem = "there is no temporary folder"
    except PortUnavailable as failure:
        problem = str(failure)
    else:
        return spool
    if named:
        raise StartRefused([f"SPOOL_DIR: {problem}"])
    if folder is not None:
        raise StartRefused([f"FETCHER_DATA_DIR: {SPOOL_FOLDER}/: {problem}"])
    log.warning("no_spool", why=problem, env_var="SPOOL_DIR")
    return None


def spool_folder(named: str, folder: DataFolder | None) -> Path:
    """Raise FileNotFoundError where the system has no temporary folder, StartRefused for ours."""
    if named:
        return Path(named)
    return folder.make_spool() if folder is not None else Path(tempfile.gettempdir())
