"""What the operators' routes look at in unit tests: letters and queues in memory."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import trio

from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.api.services import OperationsServices
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.operate_dead_letters import OperateDeadLetters
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageSigner, MessageVerifier
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import QueueMissing
from fetcher.domain.jobs import Job
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import ProcessFacts, QueueDepth, RecordStore, UtcNow

if TYPE_CHECKING:
    from tests.unit.api.harness import Api

OPERATIONS = "/v1/operations"
KEY = b"k" * 32
BEGAN = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
PROCESS = ProcessFacts(host="pod-1", pid=7, role="manager", version="v3.1.0", started_at=BEGAN)
PROCESS_JSON = {
    "host": "pod-1",
    "pid": 7,
    "role": "manager",
    "version": "v3.1.0",
    "startedAt": "2026-03-14T09:00:00Z",
}


async def told(api: "Api", what: str) -> Any:
    answered = await api.get(f"{OPERATIONS}/{what}")
    assert answered.status == 200, answered.raw
    return answered.json


@dataclass
class LetterBox:
    """DeadLetterQueue in memory."""

    letters: list[DeadLetter] = field(default_factory=list)
    is_declared: bool = True
    drops_what_is_looked_at: bool = False
    page_seconds: float = 0.0
    open_windows: int = 0
    most_open: int = 0
    looks: int = 0
    """Letters that were taken in hand."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["BoxWindow", None]:
        if not self.is_declared:
            raise QueueMissing("the broker has no such queue or exchange")
        self.open_windows += 1
        self.most_open = max(self.most_open, self.open_windows)
        try:
            await trio.lowlevel.checkpoint()
            yield BoxWindow(self)
        finally:
            self.open_windows -= 1

    async def survives_looks(self) -> bool:
        await trio.lowlevel.checkpoint()
        return not self.drops_what_is_looked_at


class BoxWindow:
    def __init__(self, box: LetterBox) -> None:
        self._box = box
        self._left = list(box.letters)
        self.total = len(box.letters)
        self.gone = 0

    async def next_page(self, *, limit: int) -> Sequence[DeadLetter]:
        await trio.sleep(self._box.page_seconds)
        page, self._left = self._left[:limit], self._left[limit:]
        self._box.looks += len(page)
        return page

    async def remove(self, letters: Sequence[DeadLetter]) -> None:
        await trio.lowlevel.checkpoint()
        for letter in letters:
            self._box.letters.remove(letter)
            self.gone += 1


class Depths:
    def __init__(self, box: LetterBox) -> None:
        self._box = box

    async def depths(self) -> Sequence[QueueDepth]:
        await trio.lowlevel.checkpoint()
        return [
            QueueDepth(name="work", purpose="work", ready=3, consumers=2),
            QueueDepth(name="fetcher.dlq", purpose="dead_letters", ready=len(self._box.letters)),
        ]


def a_letter(
    job: Job, *, tag: int = 1, at: datetime, key: bytes = KEY, reason: str = "unreadable_job"
) -> DeadLetter:
    """A work message as it was sent, signed with the key."""
    body = encode_work_message(job)
    signed = MessageSigner(key).headers(
        tenant="", body=body, exchange="", routing_key="work", timestamp=int(at.timestamp())
    )
    return DeadLetter(
        tag=tag,
        body=body,
        headers={**work_headers(job), **signed},
        exchange="",
        routing_key="work",
        reason=reason,
    )


def an_operations_room(
    records: RecordStore, now: UtcNow, *, box: LetterBox | None = None
) -> OperationsServices:
    letters = box or LetterBox()
    return OperationsServices(
        process=PROCESS,
        dependencies=list,
        actors=list,
        adapter_breakers={"rabbitmq_work": lambda: "closed"},
        queues=Depths(letters),
        letters=OperateDeadLetters(
            queue=letters,
            verifier=VerifyWork(verifier=MessageVerifier([KEY]), now=now),
            outbox=records.dispatch,
            held_back=HeldBackJobs(
                jobs=records.jobs,
                breakers=records.breakers,
                resolve=ResolveSources(
                    internal=environment_sources(()), stored=records.connections
                ),
                now=now,
            ),
        ),
        statistics=records.statistics,
        breakers=records.breakers,
        events=records.events,
        dispatch=records.dispatch,
    )
