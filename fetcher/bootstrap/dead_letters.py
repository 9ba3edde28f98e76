"""The dead letters, for the command line: on the broker, or in the data folder."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.local.data_folder import DataFolder, own_data_folder
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.bootstrap.audit import local_audit
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.command_places import CommandPlaces, open_places
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.keys import existing_key_ring, work_verifier
from fetcher.commands.audit import Caller, Deed
from fetcher.commands.dead_letters import Choice, DeadLetters, Examined, Redriven
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.verify_work import VerifyWork
from fetcher.domain.audit import LOCAL, AuditAction, letters_target
from fetcher.domain.errors import PortError, StartRefused
from fetcher.domain.ids import JobId
from fetcher.ports import DeadLetterQueue, DeadLetterWindow, InternalSources, RecordStore
from fetcher.settings import Settings

DEAD_LETTER_FAILURES = (PortError, StartRefused)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDeadLetters:
    letters: DeadLetters
    total: int


@contextmanager
def letters_folder(settings: Settings, *, removes: bool) -> Iterator[DataFolder | None]:
    """The data folder, where a part is embedded. For who ``removes`` letters of the embedded queue
    it needs its lock: the service is stopped. Raise StartRefused naming the process that owns it.
    """
    if not settings.needs_data_folder:
        yield None
    elif removes and settings.queue_is_embedded:
        with own_data_folder(settings.fetcher_data_dir) as owned:
            yield owned
    else:
        yield DataFolder(settings.fetcher_data_dir)


def letters_verifier(target: CommandTarget) -> VerifyWork:
    """Raise StartRefused where there is no master key."""
    verifier = work_verifier(existing_key_ring(target.settings))
    return VerifyWork(verifier=verifier, now=utc_now, tenant=target.tenant)


@asynccontextmanager
async def open_dead_letters(
    places: CommandPlaces,
    folder: DataFolder | None,
    verifier: VerifyWork,
    *,
    tell_gone: Callable[[int], None],
) -> AsyncIterator[OpenDeadLetters]:
    """Letters in hand; what was removed is gone after leaving: ``tell_gone`` hears then how many
    those are, whatever the end. Raise PortUnavailable."""
    async with open_letter_queue(places, folder) as queue:
        window: DeadLetterWindow | None = None
        try:
            async with queue.open() as window:
                yield OpenDeadLetters(letters=DeadLetters(window, verifier), total=window.total)
        finally:
            if window is not None:
                tell_gone(window.gone)


@asynccontextmanager
async def look_at_dead_letters(
    target: CommandTarget, *, warn: Callable[[], None]
) -> AsyncIterator[OpenDeadLetters]:
    """Nothing is removed. ``warn`` where looks wear letters out, before the first one. Raise
    PortError, StartRefused."""
    with letters_folder(target.settings, removes=False) as folder:
        verifier = letters_verifier(target)
        async with (
            open_places(target) as places,
            open_letter_queue(places, folder) as queue,
            queue.open() as window,
        ):
            if window.total and not await queue.survives_looks():
                warn()
            yield OpenDeadLetters(letters=DeadLetters(window, verifier), total=window.total)


@asynccontextmanager
async def open_letter_queue(
    places: CommandPlaces, folder: DataFolder | None
) -> AsyncIterator[DeadLetterQueue]:
    if places.settings.queue_is_embedded:
        assert folder is not None  # noqa: S101 - it is there whenever a part is embedded
        yield LocalDeadLetterQueue(folder.dead_letters)
        return
    connection = BrokerConnection(await places.broker_address(), name="fetcher dlq")
    try:
        yield AmqpDeadLetterQueue(connection)
    finally:
        await connection.aclose()


async def list_letters(
    target: CommandTarget,
    choice: Choice,
    tell: Callable[[Examined], None],
    *,
    warn: Callable[[], None],
) -> int:
    """Tell of the chosen ones; how many there are in all. ``warn`` where looks wear them out."""
    async with (
        look_at_dead_letters(target, warn=warn) as opened,
        aclosing(opened.letters.pages(choice)) as pages,
    ):
        async for page in pages:
            for each in page:
                tell(each)
        return opened.total


async def find_letter(
    target: CommandTarget, wanted: int | JobId, *, warn: Callable[[], None]
) -> Examined | None:
    """``warn`` as in :func:`list_letters`."""
    async with look_at_dead_letters(target, warn=warn) as opened:
        return await opened.letters.find(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersInHand:
    letters: DeadLetters
    records: RecordStore
    internal_sources: InternalSources
    deed: Deed


@asynccontextmanager
async def change_dead_letters(
    target: CommandTarget,
    action: AuditAction,
    *,
    tell_gone: Callable[[Deed, int], None] = lambda _deed, _count: None,
) -> AsyncIterator[LettersInHand]:
    """Letters in hand to be removed, and the records, in which the deed is an entry whatever its
    end. It ends when what was removed is gone: a file is written at the very last. ``tell_gone``
    hears of that ahead of the entry.

    Raise PortError, StartRefused.
    """
    with letters_folder(target.settings, removes=True) as folder:
        verifier = letters_verifier(target)
        async with (
            open_places(target) as places,
            places.records(folder) as records,
            local_audit(records.audit).deed(action, Caller(actor=LOCAL)) as deed,
            open_dead_letters(
                places, folder, verifier, tell_gone=partial(tell_gone, deed)
            ) as opened,
        ):
            yield LettersInHand(
                letters=opened.letters,
                records=records,
                internal_sources=places.internal_sources,
                deed=deed,
            )


async def purge_letters(
    target: CommandTarget, choice: Choice, *, tell: Callable[[int], None]
) -> int:
    """How many; ``tell`` hears how many are gone, also where it broke off."""

    def note(deed: Deed, count: int) -> None:
        deed.target = letters_target(count)
        tell(count)

    action = AuditAction.DEAD_LETTERS_PURGED
    async with change_dead_letters(target, action, tell_gone=note) as in_hand:
        return await in_hand.letters.purge(choice)


async def redrive_letters(
    target: CommandTarget,
    choice: Choice,
    *,
    jobs_a_second: float,
    tell: Callable[[Examined, Redriven], None],
) -> None:
    async with change_dead_letters(target, AuditAction.DEAD_LETTERS_REDRIVEN) as in_hand:
        records, dispatched = in_hand.records, 0

        def note(each: Examined, result: Redriven) -> None:
            nonlocal dispatched
            dispatched += result is Redriven.DISPATCHED
            in_hand.deed.target = letters_target(dispatched)
            tell(each, result)

        held_back = HeldBackJobs(
            jobs=records.jobs,
            breakers=records.breakers,
            resolve=ResolveSources(internal=in_hand.internal_sources, stored=records.connections),
            now=utc_now,
        )
        await in_hand.letters.redrive(
            choice,
            outbox=records.dispatch,
            held_back=held_back,
            jobs_a_second=jobs_a_second,
            tell=note,
        )
