"""What a redrive told of as dispatched is gone, whatever ends it."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from fetcher.adapters.dead_letters import dead_letter
from fetcher.adapters.local import dead_letter_file
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.adapters.local.event_log import open_event_log
from fetcher.commands import operate_dead_letters
from fetcher.commands.dead_letters import BATCH, Choice, Examined, Redriven
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.operate_dead_letters import OperateDeadLetters, Stop
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import RedriveAnswer
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import DeadLetterQueue, DispatchOutbox, RejectReason
from tests.unit.api.harness import START, a_job
from tests.unit.api.operations_room import KEY, LetterBox, a_letter

GOOD_WRITES = 2
ALL = 4 * BATCH


class Records:
    """Each write takes a second; after two of them the store hangs until it is too late, or
    fails."""

    def __init__(self, clock: trio.testing.MockClock, *, hangs: bool) -> None:
        self._clock = clock
        self._hangs = hangs
        self._writes = 0

    async def among(self, job_ids: Collection[JobId]) -> frozenset[JobId]:
        await trio.lowlevel.checkpoint()
        return frozenset()

    async def redrive(self, job_ids: Sequence[JobId]) -> dict[JobId, RedriveAnswer]:
        await trio.lowlevel.checkpoint()
        self._writes += 1
        self._clock.jump(1.0)
        if self._writes <= GOOD_WRITES:
            return dict.fromkeys(job_ids, RedriveAnswer.DISPATCHED)
        if not self._hangs:
            raise PortUnavailable("the records are away")
        self._clock.jump(operate_dead_letters.REDRIVE_SECONDS)
        await trio.sleep_forever()
        raise AssertionError("it hangs")


@asynccontextmanager
async def filled(
    kind: str, path: Path, letters: Sequence[DeadLetter]
) -> AsyncGenerator[DeadLetterQueue, None]:
    if kind == "memory":
        yield LetterBox([*letters])
        return
    async with open_event_log(path) as log:
        for each in letters:
            await log.publish(
                dead_letter(
                    body=each.body,
                    headers=cast("dict[str, HeaderValue]", each.headers),
                    exchange=each.exchange,
                    routing_key=each.routing_key,
                    reason=RejectReason.UNREADABLE_JOB,
                    rejected_at=START,
                )
            )
        yield LocalDeadLetterQueue(path, log)


def operated(queue: DeadLetterQueue, records: Records) -> OperateDeadLetters:
    return OperateDeadLetters(
        queue=queue,
        verifier=VerifyWork(verifier=MessageVerifier([KEY]), now=lambda: START),
        outbox=cast("DispatchOutbox", records),
        held_back=cast("HeldBackJobs", records),
    )


async def bodies(queue: DeadLetterQueue) -> set[bytes]:
    found: set[bytes] = set()
    async with queue.open() as window:
        while page := await window.next_page(limit=100):
            found |= {letter.body for letter in page}
    return found


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_what_was_told_as_dispatched_is_gone_whatever_ends_the_redrive(
    mock_clock: trio.testing.MockClock, tmp_path: Path, kind: str, hangs: bool
) -> None:
    letters = [a_letter(a_job(), tag=tag, at=START) for tag in range(ALL)]
    told: set[bytes] = set()

    def tell(each: Examined, result: Redriven) -> None:
        assert result is Redriven.DISPATCHED
        told.add(each.letter.body)

    async with filled(kind, tmp_path / "dead-letters.jsonl", letters) as queue:
        operating = operated(queue, Records(mock_clock, hangs=hangs))
        if hangs:
            assert await operating.redrive(Choice(), tell) is Stop.DEADLINE
        else:
            with pytest.raises(PortUnavailable, match="the records are away"):
                await operating.redrive(Choice(), tell)
        assert len(told) == GOOD_WRITES * BATCH
        assert await bodies(queue) == {letter.body for letter in letters} - told


async def test_file_that_cannot_be_written_hides_no_other_failure(
    mock_clock: trio.testing.MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(dead_letter_file, "_rewrite", full)
    letters = [a_letter(a_job(), tag=tag, at=START) for tag in range(ALL)]
    async with filled("file", tmp_path / "dead-letters.jsonl", letters) as queue:
        operating = operated(queue, Records(mock_clock, hangs=False))
        with pytest.raises(PortUnavailable, match="the records are away"):
            await operating.redrive(Choice(), lambda *_: None)
        assert len(await bodies(queue)) == ALL


async def test_file_that_others_write_for_too_long_is_given_up(
    mock_clock: trio.testing.MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dead-letters.jsonl"
    letters = [a_letter(a_job(), at=START)]
    async with filled("file", path, letters) as queue:

        async def never(*_: object) -> None:
            mock_clock.jump(dead_letter_file.WRITE_SECONDS)
            await trio.sleep_forever()

        monkeypatch.setattr("fetcher.adapters.local.event_log.LocalEventLog.replace", never)
        with pytest.raises(PortUnavailable, match="cannot be written"):
            async with queue.open() as window:
                await window.remove(await window.next_page(limit=1))
