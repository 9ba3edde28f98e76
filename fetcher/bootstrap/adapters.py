"""From settings to open adapters: each has one owner, this context."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.broker import open_amqp
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.local.data_folder import DataFolder, own_data_folder
from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.bootstrap.access import open_authorizer
from fetcher.bootstrap.host_guard import host_guard
from fetcher.bootstrap.keys import key_ring
from fetcher.bootstrap.shared_memory import SharedMemory, open_shared_memory
from fetcher.bootstrap.stores import open_object_store, open_record_store, usable_spool
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.engines import SourceSettings, open_source_engines
from fetcher.datasources.host_guard import HostGuard
from fetcher.ports import (
    Authorizer,
    DeclareTopology,
    InternalSources,
    MessagePublisher,
    ObjectStore,
    Probe,
    RecordStore,
    SourceEngines,
    WorkBacklog,
    WorkConsumer,
)
from fetcher.settings import Role, Settings
from fetcher_engine import Limits

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The work queue and where terminal events go."""

    work: MessagePublisher
    backlog: WorkBacklog
    consumer: WorkConsumer
    events: MessagePublisher
    probe: Probe
    declare_topology: DeclareTopology | None = None
    """None: the broker's objects are the operator's duty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    records: RecordStore
    objects: ObjectStore | None
    """None in a manager that was given no store."""
    queue: Queue
    engines: SourceEngines
    """Those of jobs: they ask the sources for their schemas."""
    remembering_engines: SourceEngines
    """Those of the API, which knows schemas for a while."""
    shared: SharedMemory
    internal_sources: InternalSources
    cipher: CredentialCipher
    keys: KeyRing
    probes: tuple[Probe, ...]
    guard: HostGuard | None = None
    authorizer: Authorizer | None = None
    """None in a worker, which nobody calls, and where everybody may do everything."""


@asynccontextmanager
async def open_adapters(settings: Settings, role: Role) -> AsyncIterator[Adapters]:
    """Open what this role needs, in the asyncio room's context; close it in reverse order.

    A dependency outside that is away stops nothing: its adapter connects when it is used. Raise
    StartRefused for what no waiting can mend: a folder in use, an unusable key.
    """
    async with AsyncExitStack() as stack:
        folder: DataFolder | None = None
        if settings.needs_data_folder:
            folder = stack.enter_context(own_data_folder(settings.fetcher_data_dir))
        keys = key_ring(settings, folder)
        opened_records = await stack.enter_async_context(
            open_record_store(settings, folder, is_owner=True)
        )
        probes = [opened_records.probe]
        queue = await open_queue(settings, role, folder, stack)
        probes.append(queue.probe)
        objects: ObjectStore | None = None
        if role.works or not settings.object_store_is_embedded:
            opened_objects = await stack.enter_async_context(open_object_store(settings, folder))
            objects = opened_objects.objects
            if role.works:
                # A manager without its store serves all but results (decisions).
                probes.append(opened_objects.probe)
        shared = await stack.enter_async_context(open_shared_memory(settings, role))
        probes += shared.probes
        cipher = CredentialCipher(keys)
        spool = await usable_spool(settings, folder) if role.works else None
        guard = await host_guard(settings)
        engines = await stack.enter_async_context(
            open_source_engines(source_settings(settings, folder, cipher, guard), spool=spool)
        )
        authorizer = None
        if role.manages:
            authorizer = await stack.enter_async_context(open_authorizer(settings))
        yield Adapters(
            records=opened_records.records,
            objects=objects,
            queue=queue,
            engines=engines,
            remembering_engines=engines.remembering(shared.schemas),
            shared=shared,
            internal_sources=internal_sources(settings),
            cipher=cipher,
            keys=keys,
            probes=tuple(probes),
            guard=guard,
            authorizer=authorizer,
        )


def internal_sources(settings: Settings) -> InternalSources:
    """A group that cannot be used is told of and does without: only its jobs fail."""
    found = environment_sources(settings.datasource_groups)
    for problem in found.skipped:
        log.warning("internal_source_skipped", problem=problem)
    return found


async def open_queue(
    settings: Settings, role: Role, folder: DataFolder | None, stack: AsyncExitStack
) -> Queue:
    if settings.queue_is_embedded:
        assert folder is not None  # noqa: S101 - the caller opens it whenever a part is embedded
        events = await stack.enter_async_context(open_event_log(folder.events))
        dead_letters = await stack.enter_async_context(open_event_log(folder.dead_letters))
        local = LocalWorkQueue(settings.work_queue, dead_letters=dead_letters)
        return Queue(work=local, backlog=local, consumer=local, events=events, probe=local.probe())
    broker = await stack.enter_async_context(
        open_amqp(
            broker_address(settings),
            work_queue=settings.work_queue,
            events_exchange=settings.events_exchange,
            consumes=role.works,
        )
    )
    declare = partial(
        broker.topology.settle,
        topology_names(settings),
        create=True,
        consumer_timeout_seconds=settings.rabbitmq_consumer_timeout_sec,
    )
    return Queue(
        work=broker.publisher,
        backlog=broker.publisher,
        consumer=broker.consumer,
        events=broker.events,
        probe=broker.probe,
        declare_topology=declare if settings.rabbitmq_declare_topology else None,
    )


def broker_address(settings: Settings) -> BrokerAddress:
    return BrokerAddress(
        scheme=settings.rabbitmq_uri.lower(),
        host=settings.rabbitmq_host,
        port=settings.rabbitmq_port_amqp,
        user=settings.rabbitmq_default_user,
        password=settings.rabbitmq_default_pass.get_secret_value(),
    )


def topology_names(settings: Settings) -> TopologyNames:
    return TopologyNames(work_queue=settings.work_queue, events_exchange=settings.events_exchange)


NAMING_SECONDS = 10.0
"""How long before a job's own deadline a silent source is given up: that failure names the source
and the stage, the job's deadline cannot. Half of it is for the server's own end of a statement.
"""


def source_settings(
    settings: Settings,
    folder: DataFolder | None,
    cipher: CredentialCipher,
    guard: HostGuard | None = None,
) -> SourceSettings:
    return SourceSettings(
        decrypt=cipher.decrypt,
        limits=engine_limits(settings),
        sqlite_folder=sqlite_folder(settings, folder),
        judge=guard.judge if guard is not None else None,
        include_views=settings.datasource_include_views,
        sqlserver_trusts_all=settings.datasource_sqlserver_trust_cert,
        keeps_default_schema=settings.datasource_legacy_default_schema,
        max_cell_bytes=settings.datasource_max_cell_bytes,
        lock_timeout_seconds=settings.datasource_lock_timeout_sec,
        query_timeout_seconds=min(
            settings.datasource_query_timeout_sec,
            max(settings.engine_timeout_sec - NAMING_SECONDS, 1.0),
        ),
        sealed_field_keys=SealedFieldKeys(
            hash_secret=settings.crypto_hash_secret_key_plugin_crm.get_secret_value(),
            encrypt_secret=settings.crypto_encrypt_secret_key_plugin_crm.get_secret_value(),
        ),
    )


def sqlite_folder(settings: Settings, folder: DataFolder | None) -> Path | None:
    if settings.datasource_sqlite_dir is not None:
        return settings.datasource_sqlite_dir
    return folder.make_sources() if folder is not None else None


def engine_limits(settings: Settings) -> Limits:
    return Limits(
        max_result_bytes=settings.engine_max_result_bytes, timeout=settings.engine_timeout_sec
    ).merged_over_defaults()
