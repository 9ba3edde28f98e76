"""One MongoDB database: deadlines, the clock, and work that is done once per process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

import pymongo
import trio
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import AutoReconnect, InvalidOperation, ServerSelectionTimeoutError
from pymongo.read_concern import ReadConcern

from fetcher.adapters.mongo.clock import ServerClock
from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.failures import IndexRefused, NeverSent, call_mongo
from fetcher.domain.errors import PortUnavailable
from fetcher.fair_places import Places

T = TypeVar("T")

OPERATION_SECONDS: Final = 5.0
"""The driver's deadline for all commands of one operation, its own retries included."""
SETTLE_SECONDS: Final = 3.0
"""The driver's deadline for reading back what an unanswered write did."""
PREPARATION_SECONDS: Final = 300.0
SHARED_SECONDS: Final = 0.5
"""For how long a failed preparation stands for everybody who asks."""
REFUSED_SECONDS: Final = 30.0
"""The same where the records themselves stand in the way: each try looks at all of them."""
CROSSING_SLACK_SECONDS: Final = 0.5
"""How much later than the driver's own deadline the bridge cuts a call off."""

Database: TypeAlias = AsyncDatabase[Document]
Collection: TypeAlias = AsyncCollection[Document]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an operation works with on the asyncio side, for one crossing."""

    database: Database
    clock: ServerClock

    @property
    def now(self) -> datetime:
        """The server's clock, which goes on during an operation."""
        return self.clock.now()

    @property
    def jobs(self) -> Collection:
        return self.database["job"]

    @property
    def connections(self) -> Collection:
        return self.database["connection"]

    @property
    def breakers(self) -> Collection:
        return self.database["connection_breaker"]

    @property
    def audit(self) -> Collection:
        return self.database["audit"]

    @property
    def majority_jobs(self) -> Collection:
        """Jobs as a majority of the servers has them: what is read here is never rolled back."""
        return self.jobs.with_options(read_concern=ReadConcern("majority"))

    @property
    def majority_connections(self) -> Collection:
        return self.connections.with_options(read_concern=ReadConcern("majority"))


Operation: TypeAlias = Callable[[Turn], Awaitable[T]]
"""A coroutine function that runs on the asyncio side: it may await the driver and nothing else."""


class MongoServer:
    """Runs operations, one crossing each; connects when the first one needs it.

    ``prepare`` is run with the database before the first operation, until it has succeeded once.
    """

    def __init__(
        self,
        client: AsyncMongoClient[Document],
        database: Database,
        *,
        prepare: Callable[[Database], Awaitable[None]],
        clock: ServerClock | None = None,
        places: Places | None = None,
    ) -> None:
        """``places`` are the connections that its operations may have at once, where others use the
        client too."""
        self._client = client
        self._database = database
        self._prepare = prepare
        self._clock = clock or ServerClock()
        self._places = places
        self._prepared = False
        self._preparing = trio.Lock()
        self._not_before = float("-inf")

    async def run(self, operation: Operation[T], *, settle: Operation[T | None] | None = None) -> T:
        """The operation's result. Raise PortUnavailable when the server does not give one in time.

        A write that may have taken effect although no answer came is settled by ``settle``: it
        reads back and gives the result, or None where that shows nothing. Where twice does no harm
        it may be the write itself: a primary that steps down refuses the first, and not the second.
        """
        await self._be_prepared()
        try:
            return await self._cross(OPERATION_SECONDS, operation)
        except PortUnavailable as error:
            failure = error
        self._clock.distrust()
        if settle is not None and not isinstance(failure, NeverSent):
            settled = await self._cross(SETTLE_SECONDS, settle)
            if settled is not None:
                return settled
        raise failure

    async def ping(self) -> None:
        """On the asyncio side, with the driver's own exceptions: the probe words them."""
        await self._client.admin.command("ping")

    async def _cross(self, seconds: float, operation: Operation[T]) -> T:
        if self._places is None:
            return await self._call(seconds, operation)
        began_at = trio.current_time()
        with trio.move_on_after(seconds) as waiting:
            await self._places.acquire()
        if waiting.cancelled_caught:
            raise NeverSent("too many operations wait for the record store")
        try:
            left_seconds = max(0.0, began_at + seconds - trio.current_time())
            return await self._call(left_seconds, operation)
        finally:
            self._places.release()

    async def _call(self, seconds: float, operation: Operation[T]) -> T:
        async def crossing() -> T:
            with pymongo.timeout(seconds):
                if self._clock.is_stale:
                    await self._ask_the_time()
                return await operation(Turn(database=self._database, clock=self._clock))

        return await call_mongo(seconds + CROSSING_SLACK_SECONDS, crossing)

    async def _reach(self) -> None:
        with pymongo.timeout(OPERATION_SECONDS):
            await self._ask_the_time()

    async def _ask_the_time(self) -> None:
        try:
            await self._ask_once()
        except ServerSelectionTimeoutError:
            # which is an AutoReconnect too, and has waited for as long as it may
            raise
        except AutoReconnect:
            # A connection of the pool that the server had closed, as one does that steps down: the
            # driver repeats reads by itself, but no command. The others of the pool are gone now.
            await self._ask_once()

    async def _ask_once(self) -> None:
        asked_at = self._clock.asking()
        answer = await self._database.command("hello", codec_options=self._database.codec_options)
        server_time = answer.get("localTime")
        if not isinstance(server_time, datetime):
            raise InvalidOperation("the server does not tell the time")
        self._clock.answered(asked_at, server_time)

    async def _be_prepared(self) -> None:
        """Prepare once. Who waited for somebody else's try shares its failure."""
        if self._prepared:
            return
        with trio.move_on_after(OPERATION_SECONDS) as waiting:
            await self._preparing.acquire()
        if waiting.cancelled_caught:
            raise PortUnavailable("the record store's indexes are being made")
        try:
            if not self._prepared:
                await self._try_to_prepare()
        finally:
            self._preparing.release()

    async def _try_to_prepare(self) -> None:
        if trio.current_time() < self._not_before:
            raise PortUnavailable("the record store could not be prepared")
        try:
            # The driver looks for a server as long as the deadline allows: first a short one.
            await call_mongo(OPERATION_SECONDS + CROSSING_SLACK_SECONDS, self._reach)
            await call_mongo(PREPARATION_SECONDS, self._prepare, self._database)
        except PortUnavailable as failure:
            pause = REFUSED_SECONDS if isinstance(failure, IndexRefused) else SHARED_SECONDS
            self._not_before = trio.current_time() + pause
            raise
        self._prepared = True
