"""What a diagnosis looks at: stores, broker, disks; also beside the service, and while parts of it
are away. Nothing is changed: no index, no table, no queue is made, and no claim taken back."""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import trio

from fetcher.actors.probes import run_probes
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.probe import NeededObjects, rabbitmq_probe
from fetcher.adapters.amqp.queue_depths import AmqpQueueDepths
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.dead_letters import DEAD_LETTER_EXCHANGE, DEAD_LETTER_QUEUE
from fetcher.adapters.local.data_folder import DataFolder
from fetcher.adapters.local.dead_letter_level import LocalDeadLetterLevels
from fetcher.adapters.local.object_folder import FolderObjectStore
from fetcher.adapters.redis.server import open_redis
from fetcher.adapters.sqlite import schema
from fetcher.adapters.sqlite.snapshot import schema_version
from fetcher.api.models.operations import (
    ConnectionBreakerAnswer,
    JobCountsAnswer,
    OutboxAnswer,
    QueueAnswer,
)
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.command_places import open_places
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.shared_memory import redis_address
from fetcher.bootstrap.stores import OpenRecords, open_object_store
from fetcher.commands.diagnosis import GRACE_SECONDS, PART_SECONDS, Facts, Part, look_at
from fetcher.domain.errors import PortError, PortUnavailable, StartRefused
from fetcher.domain.jobs import Job
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import Probe, QueueDepth
from fetcher.settings import Role

CONNECTION_NAME: Final = "fetcher diagnose"
PROBE_SECONDS: Final = PART_SECONDS - 2 * GRACE_SECONDS
"""For one dependency, so that those that answered are told within the part's own deadline."""
FAILURES_SHOWN: Final = 50
BREAKERS_SHOWN: Final = 100
_VERSION: Final = re.compile(r"[0-9A-Za-z.+~-]{1,40}", re.ASCII)
"""A server may say anything of itself."""

Look: TypeAlias = Callable[[CommandTarget, Role], Awaitable[Facts]]
Found: TypeAlias = dict[str, object]
LookAtMany: TypeAlias = Callable[[CommandTarget, Role, Found], Awaitable[Facts]]
"""Puts what it has found so far where it is told even if the next thing hangs."""
_Opened: TypeAlias = AbstractAsyncContextManager[Probe]


def diagnosed_parts(target: CommandTarget, role: Role) -> list[Part]:
    """Each opens what it needs for itself: one that is away or hangs is no other's trouble."""
    of_one: Mapping[str, Look] = {
        "store": store,
        "queues": queues,
        "jobs": jobs,
        "failures": failures,
        "breakers": breakers,
    }
    of_many: Mapping[str, LookAtMany] = {
        "probes": probes,
        "servers": server_versions,
        "disks": disks,
    }
    parts = [Part(name=name, look=partial(look, target, role)) for name, look in of_one.items()]
    for name, look_at_many in of_many.items():
        found: Found = {}
        look = partial(look_at_many, target, role, found)
        parts.append(Part(name=name, look=look, found=found))
    return parts


# --- parts ------------------------------------------------------------------------------------


async def probes(target: CommandTarget, role: Role, found: Found) -> Facts:
    """Every dependency, as readiness asks it; one that is down is no failure of the part.

    The answers are put into ``found`` ahead of what may hang while it is left.
    """
    asks = [_asking(name, opened) for name, opened in _probes(target, role).items()]
    async with trio.open_nursery() as nursery:
        results = await look_at(asks, nursery)
        told: dict[str, object] = {}
        for result in results:
            told |= result.facts or {result.name: _unasked(result.failure or {})}
        found["dependencies"] = told
        nursery.cancel_scope.cancel()
    return found


def _asking(name: str, opened: _Opened) -> Part:
    """Opens, asks and closes; an answer stays one where closing fails or hangs."""
    found: Found = {}

    async def ask() -> Facts:
        async with opened as probe, trio.open_nursery() as nursery:
            result = (await run_probes([probe], nursery))[probe.name]
            found[probe.name] = {
                "status": result.status.value,
                "latencyMs": result.latency_ms,
                "tls": result.tls,
                "error": result.error,
                "reason": result.reason,
            }
            nursery.cancel_scope.cancel()
        return found

    return Part(name=name, look=ask, seconds=PROBE_SECONDS, found=found)


def _unasked(failure: Facts) -> Facts:
    """What did not come as far as being asked."""
    crash = {name: failure[name] for name in ("type", "places") if name in failure}
    return {"status": "unasked", "error": failure.get("text", failure.get("code")), **crash}


async def server_versions(target: CommandTarget, role: Role, found: Found) -> Facts:
    """What servers say of themselves; None where they say nothing that is one."""
    told: dict[str, object] = {}
    missing: dict[str, str] = {}
    found |= {"versions": told, "unknown": missing}

    async def note(name: str, ask: Callable[[CommandTarget], Awaitable[str]]) -> None:
        try:
            text = await ask(target)
        except (PortError, StartRefused) as failure:
            missing[name] = str(failure)
        else:
            told[name] = text if _VERSION.fullmatch(text) else None

    async with trio.open_nursery() as nursery:
        if not target.settings.record_store_is_embedded:
            nursery.start_soon(note, "mongodb", _mongodb_version)
        if not target.settings.queue_is_embedded:
            nursery.start_soon(note, "rabbitmq", _rabbitmq_version)
        if target.settings.uses_redis and role.manages:
            nursery.start_soon(note, "redis", _redis_version)
    return {"versions": dict(sorted(told.items())), "unknown": dict(sorted(missing.items()))}


async def store(target: CommandTarget, _: Role) -> Facts:
    if not target.settings.record_store_is_embedded:
        return {"kind": "mongodb", "schemaVersion": None}
    folder = DataFolder(target.settings.fetcher_data_dir)
    version = await _schema_version(folder)
    file_bytes = await trio.to_thread.run_sync(_size, folder.database, abandon_on_cancel=True)
    return {
        "kind": "sqlite",
        "schemaVersion": version,
        "schemaVersionKnown": schema.VERSION,
        "bytes": file_bytes,
    }


async def queues(target: CommandTarget, _: Role) -> Facts:
    """The embedded work queue lies in the service's memory: ``jobs`` tells what is dispatched."""
    if target.settings.queue_is_embedded:
        letters = DataFolder(target.settings.fetcher_data_dir).dead_letters
        level = await LocalDeadLetterLevels(letters, now=utc_now).level()
        depths = [
            QueueDepth(name=target.settings.work_queue, purpose="work", ready=None),
            QueueDepth(name=DEAD_LETTER_QUEUE, purpose="dead_letters", ready=level.messages),
        ]
        oldest = rfc3339(level.oldest_at) if level.oldest_at is not None else None
        return {"queues": _told(depths), "oldestDeadLetterAt": oldest}
    purposes = {target.settings.work_queue: "work", DEAD_LETTER_QUEUE: "dead_letters"}
    async with _broker(target) as connection:
        return {"queues": _told(await AmqpQueueDepths(connection, purposes).depths())}


async def jobs(target: CommandTarget, _: Role) -> Facts:
    async with _records(target) as opened:
        records = opened.records
        by_status = await records.statistics.count_by_status()
        active = await records.dispatch.active_jobs()
        events = await records.events.backlog()
    return {
        "counts": JobCountsAnswer.of(by_status, parked=active.parked).to_json(),
        "outbox": OutboxAnswer.of(events, active).to_json(),
    }


async def failures(target: CommandTarget, _: Role) -> Facts:
    """The one that ended last first."""
    async with _records(target) as opened:
        failed = await opened.records.jobs.latest_failed(limit=FAILURES_SHOWN)
    return {"failures": [failed_job(job) for job in failed]}


async def breakers(target: CommandTarget, _: Role) -> Facts:
    async with _records(target) as opened:
        kept = opened.records.breakers
        listed = await kept.list_open(limit=BREAKERS_SHOWN)
        count = await kept.count_open()
    return {
        "openConnections": count,
        "connections": [ConnectionBreakerAnswer.of(each).to_json() for each in listed],
    }


async def disks(target: CommandTarget, _: Role, found: Found) -> Facts:
    folders: dict[str, Path] = {}
    if target.settings.needs_data_folder:
        folders["data"] = target.settings.fetcher_data_dir
    if target.settings.spools and target.settings.spool_dir.strip():
        folders["spool"] = Path(target.settings.spool_dir.strip())
    told: dict[str, object] = {}
    found["folders"] = told
    problems: list[str] = []

    async def measure(name: str, folder: Path) -> None:
        try:
            told[name] = await _disk(folder)
        except PortUnavailable as failure:
            problems.append(str(failure))

    async with trio.open_nursery() as nursery:
        for name, folder in folders.items():
            nursery.start_soon(measure, name, folder)
    if problems:
        raise PortUnavailable("; ".join(sorted(problems)))
    return found


def failed_job(job: Job) -> Facts:
    """By ids and codes: no text, and no name of a table or field."""
    failure = job.failure
    return {
        "id": str(job.id),
        "code": failure.code if failure is not None else None,
        "connection": failure.source if failure is not None else None,
        "stage": failure.stage if failure is not None else None,
        "reason": failure.reason if failure is not None else None,
        "createdAt": rfc3339(job.created_at),
        "completedAt": rfc3339(job.completed_at) if job.completed_at is not None else None,
        "attempt": job.attempt,
        "takeovers": job.takeovers,
    }


# --- what they open ---------------------------------------------------------------------------


@asynccontextmanager
async def _records(target: CommandTarget) -> AsyncIterator[OpenRecords]:
    """An embedded store of another schema is left alone: to open it would change it."""
    folder = (
        DataFolder(target.settings.fetcher_data_dir) if target.settings.needs_data_folder else None
    )
    if folder is not None and target.settings.record_store_is_embedded:
        version = await _schema_version(folder)
        if version != schema.VERSION:
            problem = f"the record store has schema {version}, this program {schema.VERSION}"
            raise StartRefused([f"FETCHER_DATA_DIR: {problem}"])
    async with (
        open_places(target) as places,
        places.opened_records(folder, only_looks=True) as opened,
    ):
        yield opened


async def _schema_version(folder: DataFolder) -> int:
    # trio's own Path would wait for a disk that hangs, whatever the deadline
    exists = folder.database.exists
    if not await trio.to_thread.run_sync(exists, abandon_on_cancel=True):
        raise StartRefused([f"FETCHER_DATA_DIR: {folder.path} has no records"])
    return await trio.to_thread.run_sync(schema_version, folder.database, abandon_on_cancel=True)


@asynccontextmanager
async def _broker(target: CommandTarget) -> AsyncIterator[BrokerConnection]:
    async with open_places(target) as places:
        connection = BrokerConnection(await places.broker_address(), name=CONNECTION_NAME)
        try:
            yield connection
        finally:
            await connection.aclose()


def _probes(target: CommandTarget, role: Role) -> Mapping[str, _Opened]:
    """Contexts of the probes, not entered yet."""
    found: dict[str, _Opened] = {"record_store": _record_store_probe(target)}
    if not target.settings.queue_is_embedded:
        found["rabbitmq"] = _rabbitmq_probe(target)
    if role.works or not target.settings.object_store_is_embedded:
        found["object_store"] = _object_store_probe(target)
    if target.settings.uses_redis and role.manages:
        found["redis"] = _redis_probe(target)
    return found


@asynccontextmanager
async def _record_store_probe(target: CommandTarget) -> AsyncIterator[Probe]:
    async with _records(target) as opened:
        yield opened.probe


@asynccontextmanager
async def _rabbitmq_probe(target: CommandTarget) -> AsyncIterator[Probe]:
    needed = NeededObjects(
        work_queue=target.settings.work_queue,
        events_exchange=target.settings.events_exchange,
        dead_letter_exchange=DEAD_LETTER_EXCHANGE,
    )
    async with _broker(target) as connection:
        yield rabbitmq_probe(connection, CircuitBreaker(), needed)


@asynccontextmanager
async def _object_store_probe(target: CommandTarget) -> AsyncIterator[Probe]:
    """The folder is not opened as its owner does, who removes what was left unfinished."""
    if target.settings.object_store_is_embedded:
        yield FolderObjectStore(DataFolder(target.settings.fetcher_data_dir).objects).probe()
        return
    async with open_object_store(target.settings, None) as opened:
        yield opened.probe


@asynccontextmanager
async def _redis_probe(target: CommandTarget) -> AsyncIterator[Probe]:
    async with open_redis(redis_address(target.settings)) as server:
        yield server.probe


async def _mongodb_version(target: CommandTarget) -> str:
    async with _records(target) as opened:
        return await opened.server_version() if opened.server_version is not None else ""


async def _rabbitmq_version(target: CommandTarget) -> str:
    async with _broker(target) as connection:
        return ".".join(str(part) for part in await connection.broker_version())


async def _redis_version(target: CommandTarget) -> str:
    async with open_redis(redis_address(target.settings)) as server:
        return await server.version()


def _told(depths: Sequence[QueueDepth]) -> list[object]:
    return [QueueAnswer.of(each).to_json() for each in depths]


def _size(path: Path) -> int:
    return path.stat().st_size


async def _disk(folder: Path) -> Facts:
    try:
        found = await trio.to_thread.run_sync(os.statvfs, folder, abandon_on_cancel=True)
    except OSError as error:
        raise PortUnavailable(f"{folder}: {os.strerror(error.errno or 0)}") from None
    return {
        "path": str(folder),
        "freeBytes": found.f_bavail * found.f_frsize,
        "sizeBytes": found.f_blocks * found.f_frsize,
        "freeInodes": found.f_favail,
    }
