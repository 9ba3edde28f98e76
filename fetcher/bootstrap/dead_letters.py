"""The dead letters, for the command line: on the broker, or in the data folder."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.local.data_folder import DataFolder, own_data_folder
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.bootstrap.adapters import broker_address
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.bootstrap.stores import open_record_store
from fetcher.commands.dead_letters import Choice, DeadLetters, Examined, Redriven
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.errors import PortError, StartRefused
from fetcher.domain.ids import JobId
from fetcher.ports import DeadLetterQueue
from fetcher.settings import Settings

DEAD_LETTER_FAILURES = (PortError, StartRefused)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDeadLetters:
    letters: DeadLetters
    total: int
    folder: DataFolder | None


@asynccontextmanager
async def open_dead_letters(settings: Settings, *, removes: bool) -> AsyncIterator[OpenDeadLetters]:
    """Letters in hand. In the data folder ``removes`` needs its lock: the service is stopped.

    Raise PortUnavailable, or StartRefused naming the process that owns the folder.
    """
    with ExitStack() as stack:
        folder: DataFolder | None = None
        if settings.needs_data_folder and removes and settings.queue_is_embedded:
            folder = stack.enter_context(own_data_folder(settings.fetcher_data_dir))
        elif settings.needs_data_folder:
            folder = DataFolder(settings.fetcher_data_dir)
        keys = existing_key_ring(settings)
        verifier = VerifyWork(
            verifier=MessageVerifier([each.internal_hmac for each in keys]), now=utc_now
        )
        async with open_letter_queue(settings, folder) as queue, queue.open() as window:
            yield OpenDeadLetters(
                letters=DeadLetters(window, verifier), total=window.total, folder=folder
            )


@asynccontextmanager
async def open_letter_queue(
    settings: Settings, folder: DataFolder | None
) -> AsyncIterator[DeadLetterQueue]:
    if settings.queue_is_embedded:
        assert folder is not None  # noqa: S101 - it is there whenever a part is embedded
        yield LocalDeadLetterQueue(folder.dead_letters)
        return
    connection = BrokerConnection(broker_address(settings), name="fetcher dlq")
    try:
        yield AmqpDeadLetterQueue(connection)
    finally:
        await connection.aclose()


async def list_letters(settings: Settings, choice: Choice, tell: Callable[[Examined], None]) -> int:
    """Tell of the chosen ones; how many there are in all."""
    async with (
        open_dead_letters(settings, removes=False) as opened,
        aclosing(opened.letters.pages(choice)) as pages,
    ):
        async for page in pages:
            for each in page:
                tell(each)
        return opened.total


async def find_letter(settings: Settings, wanted: int | JobId) -> Examined | None:
    async with open_dead_letters(settings, removes=False) as opened:
        return await opened.letters.find(wanted)


async def purge_letters(settings: Settings, choice: Choice) -> int:
    async with open_dead_letters(settings, removes=True) as opened:
        return await opened.letters.purge(choice)


async def redrive_letters(
    settings: Settings,
    choice: Choice,
    *,
    jobs_a_second: float,
    tell: Callable[[Examined, Redriven], None],
) -> None:
    async with (
        open_dead_letters(settings, removes=True) as opened,
        open_record_store(settings, opened.folder, is_owner=False) as store,
    ):
        records = store.records
        held_back = HeldBackJobs(
            jobs=records.jobs,
            breakers=records.breakers,
            resolve=ResolveSources(
                internal=environment_sources(settings.datasource_groups),
                stored=records.connections,
            ),
            now=utc_now,
        )
        await opened.letters.redrive(
            choice,
            outbox=records.dispatch,
            held_back=held_back,
            jobs_a_second=jobs_a_second,
            tell=tell,
        )
