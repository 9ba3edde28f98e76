"""One worker process's actors over the shared bench."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from fetcher.actors.extractor import Extractor
from fetcher.actors.intake import Intake
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.domain.backoff import CONSUMER_BACKOFF, Backoff
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.jobs import Job
from fetcher.fair_places import Places
from fetcher.ports import UNTRACED, Tracer
from tests.unit.actors.bench import (
    Bench,
    FakeConsumer,
    FakeDelivery,
    FakeJobRun,
    FakeVerifier,
)


class Worker:
    """One worker process's actors for jobs."""

    def __init__(
        self,
        bench: Bench,
        job_run: FakeJobRun,
        consumer: FakeConsumer,
        places: int = 2,
        *,
        shared: Places | None = None,
        tracer: Tracer = UNTRACED,
        backoff: Backoff = CONSUMER_BACKOFF,
    ) -> None:
        self.bench = bench
        self.intake = Intake(
            consumer=consumer,
            verifier=FakeVerifier(),
            orders=bench.orders,
            leases=bench.records.leases,
            store_away=bench.store_away,
            places=shared or trio.Semaphore(places),
            prefetch=places,
            hold_seconds=900,
            lifecycle=bench.lifecycle,
            metrics=bench.metrics,
            backoff=backoff,
        )
        self.keeper = LeaseKeeper(
            leases=bench.records.leases, commands=bench.leases, times=LeaseTimes()
        )
        self.extractors = [
            Extractor(
                number=number,
                owner="w1",
                leases=bench.records.leases,
                lease_seconds=60,
                hold_seconds=900,
                job_run=job_run,
                orders=bench.orders,
                store_away=bench.store_away,
                lease_commands=bench.leases,
                relay_hints=bench.relay_hints,
                lifecycle=bench.lifecycle,
                metrics=bench.jobs,
                tracer=tracer,
            )
            for number in range(places)
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keeper.run)
            for extractor in self.extractors:
                nursery.start_soon(extractor.run)
            nursery.start_soon(self.intake.run)
            yield nursery
            nursery.cancel_scope.cancel()


def a_delivery_of(job: Job) -> FakeDelivery:
    return FakeDelivery(body=str(job.id).encode())


class StoreAway:
    """The record store's leases, away between two times."""

    def __init__(self, bench: Bench, away_from: float, away_until: float) -> None:
        self._leases = bench.records.leases
        self._span = (away_from, away_until)

    def __getattr__(self, name: str) -> object:
        if self._span[0] <= trio.current_time() < self._span[1]:
            return self._away
        return getattr(self._leases, name)

    async def _away(self, *_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("store away")
