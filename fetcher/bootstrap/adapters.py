"""From settings to open adapters: each has one owner, this context."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.amqp.queue_depths import AmqpQueueDepths
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE
from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.local.data_folder import DataFolder
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.adapters.local.dead_letter_level import LocalDeadLetterLevels
from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.local.file_turnover import FileTurnover
from fetcher.adapters.local.queue_depths import LocalQueueDepths
from fetcher.adapters.local.spool import FolderSpool
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.process_parts import open_process_parts
from fetcher.bootstrap.shared_memory import SharedMemory
from fetcher.bootstrap.stores import open_record_store
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.engines import SourceSettings, open_source_engines
from fetcher.datasources.host_guard import HostGuard
from fetcher.datasources.threads import PROCESS_THREADS, SourceThreads
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import (
    UNTRACED,
    Authorizer,
    DeadLetterLevels,
    DeadLetterQueue,
    DeclareTopology,
    InternalSources,
    MessagePublisher,
    ObjectStore,
    PasswordCipher,
    Probe,
    QueueDepths,
    RecordStore,
    SourceEngines,
    Tracer,
    WorkBacklog,
    WorkConsumer,
)
from fetcher.settings import Role, Settings
from fetcher_engine import Limits

log = structlog.get_logger(__name__)


MAX_DEAD_LETTER_BYTES = 64 * 1024 * 1024
"""Then the embedded queue's dead letters are full, as a broker's are: messages wait in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The work queue and where terminal events go."""

    work: MessagePublisher
    backlog: WorkBacklog
    consumer: WorkConsumer
    events: MessagePublisher
    dead_letters: DeadLetterLevels
    probe: Probe
    letters: DeadLetterQueue
    depths: QueueDepths
    declare_topology: DeclareTopology | None = None
    """None: the broker's objects are the operator's duty."""
    breakers: Mapping[str, CircuitBreaker] = field(default_factory=dict)
    """By part; none where everything is embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What one tenant's use cases work with, or those of a process without tenants."""

    tenant: Tenant = NO_TENANT
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
    cipher: PasswordCipher
    keys: KeyRing
    probes: tuple[Probe, ...]
    session_use: Callable[[], tuple[int, int]]
    """Sessions to sources: in use, and idle."""
    store_connections: Callable[[], tuple[int, int]] | None = None
    """Connections to the record store's server: open, and in use; None without one."""
    spool: FolderSpool | None = None
    disks: Mapping[str, Path] = field(default_factory=dict)
    """Folders that fill up, by what they are for: ``data``, ``spool``."""
    guard: HostGuard | None = None
    authorizer: Authorizer | None = None
    """None in a worker, which nobody calls, and where everybody may do everything."""
    tracer: Tracer = UNTRACED


@asynccontextmanager
async def open_adapters(
    settings: Settings, role: Role, tracer: Tracer = UNTRACED
) -> AsyncIterator[Adapters]:
    """Open what this role needs, in the asyncio room's context; close it in reverse order.

    A dependency outside that is away stops nothing: its adapter connects when it is used. Raise
    StartRefused for what no waiting can mend: a folder in use, an unusable key.
    """
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(open_process_parts(settings, role, tracer))
        folder = parts.folder
        opened_records = await stack.enter_async_context(
            open_record_store(settings, folder, is_owner=True)
        )
        queue = await open_queue(settings, role, folder, stack)
        engines = await stack.enter_async_context(
            open_source_engines(
                source_settings(settings, folder, parts.cipher, parts.guard),
                spool=parts.spool,
                tracer=tracer,
            )
        )
        yield Adapters(
            records=opened_records.records,
            objects=parts.objects.objects if parts.objects is not None else None,
            queue=queue,
            engines=engines,
            remembering_engines=engines.remembering(parts.shared.schemas),
            shared=parts.shared,
            internal_sources=internal_sources(settings),
            cipher=parts.cipher,
            keys=parts.keys,
            probes=(opened_records.probe, queue.probe, *parts.probes),
            session_use=engines.session_use,
            store_connections=opened_records.connections,
            spool=parts.spool,
            disks=watched_disks(folder, parts.spool),
            guard=parts.guard,
            authorizer=parts.authorizer,
            tracer=tracer,
        )


def watched_disks(folder: DataFolder | None, spool: FolderSpool | None) -> dict[str, Path]:
    disks = {"data": folder.path} if folder is not None else {}
    return disks | ({"spool": spool.folder} if spool is not None else {})


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
        events = await stack.enter_async_context(
            open_event_log(folder.events, turnover=event_turnover(settings))
        )
        dead_letters = await stack.enter_async_context(
            open_event_log(folder.dead_letters, max_bytes=MAX_DEAD_LETTER_BYTES)
        )
        local = LocalWorkQueue(settings.work_queue, dead_letters=dead_letters, now=utc_now)
        levels = LocalDeadLetterLevels(folder.dead_letters, now=utc_now)
        return Queue(
            work=local,
            backlog=local,
            consumer=local,
            events=events,
            dead_letters=levels,
            probe=local.probe(),
            letters=LocalDeadLetterQueue(folder.dead_letters, dead_letters),
            depths=LocalQueueDepths(local, levels),
        )
    if settings.rabbitmq_uri.lower() != "amqps":
        log.warning("plaintext_connection", feature="rabbitmq_tls", env_var="ALLOW_INSECURE_TLS")
    broker = await stack.enter_async_context(
        open_amqp(
            broker_address(settings),
            work_queue=settings.work_queue,
            events_exchange=settings.events_exchange,
            consumes=role.works,
            now=utc_now,
        )
    )
    return queue_on(broker, settings)


def queue_on(broker: AmqpBroker, settings: Settings) -> Queue:
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
        dead_letters=broker.dead_letters,
        probe=broker.probe,
        breakers=broker.breakers,
        letters=AmqpDeadLetterQueue(broker.operating),
        depths=AmqpQueueDepths(
            broker.operating, {settings.work_queue: "work", DEAD_LETTER_QUEUE: "dead_letters"}
        ),
        declare_topology=declare if settings.rabbitmq_declare_topology else None,
    )


def event_turnover(settings: Settings) -> FileTurnover:
    return FileTurnover(
        max_bytes=settings.event_file_max_mib * 1024 * 1024,
        max_days=settings.event_file_max_days,
        kept=settings.event_files_kept,
        now=utc_now,
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
    cipher: PasswordCipher,
    guard: HostGuard | None = None,
    threads: SourceThreads = PROCESS_THREADS,
) -> SourceSettings:
    return SourceSettings(
        decrypt=cipher.decrypt,
        limits=engine_limits(settings),
        sqlite_folder=sqlite_folder(settings, folder),
        judge=guard.judge if guard is not None else None,
        threads=threads,
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
