"""How often the server is asked for a batch of jobs that are redriven (MongoDispatchOutbox)."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fetcher.adapters.mongo.dispatch_outbox import MongoDispatchOutbox
from fetcher.adapters.mongo.job_documents import job_document
from fetcher.adapters.mongo.server import MongoServer
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import RedriveAnswer
from tests.unit.api.harness import START, a_job

JOBS = [a_job(request_hash=str(number)) for number in range(25)]
IDS = [job.id for job in JOBS]


@dataclass
class JobsOnServer:
    """Each look finds all as they were made; ``missed`` says of each write how many it misses."""

    missed: list[int] = field(default_factory=list)
    looks: int = 0
    writes: list[int] = field(default_factory=list)

    async def find(self, wanted: object) -> AsyncIterator[dict[str, Any]]:
        self.looks += 1
        for job in JOBS:
            yield job_document(job)

    async def bulk_write(self, updates: Sequence[object], *, ordered: bool) -> SimpleNamespace:
        assert not ordered
        self.writes.append(len(updates))
        missed = self.missed.pop(0) if self.missed else 0
        return SimpleNamespace(matched_count=len(updates) - missed)

    async def run(self, operation: Callable[[Any], Any]) -> Any:
        return await operation(SimpleNamespace(jobs=self, now=START))


async def redriven(server: JobsOnServer) -> object:
    return await MongoDispatchOutbox(cast("MongoServer", server)).redrive(IDS)


async def test_a_batch_costs_one_look_and_one_write() -> None:
    server = JobsOnServer()
    assert await redriven(server) == dict.fromkeys(IDS, RedriveAnswer.DISPATCHED)
    assert (server.looks, server.writes) == (1, [25])


async def test_what_was_changed_in_between_is_judged_anew() -> None:
    server = JobsOnServer(missed=[1])
    assert await redriven(server) == dict.fromkeys(IDS, RedriveAnswer.DISPATCHED)
    assert server.looks == 2


async def test_records_that_change_again_and_again_are_given_up() -> None:
    server = JobsOnServer(missed=[1] * 99)
    with pytest.raises(PortUnavailable):
        await redriven(server)
