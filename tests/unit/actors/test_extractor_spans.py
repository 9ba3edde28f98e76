"""The spans of a delivery fail where its job is left without a record of it, and only there."""

from dataclasses import replace

import trio
import trio.testing

from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.ports import JobLeases
from tests.unit.actors.bench import Bench, FakeConsumer, FakeJobRun, a_job
from tests.unit.actors.worker import Worker, a_delivery_of
from tests.unit.recorded_spans import RecordedSpans


class Failing:
    """A record store that fails at one question."""

    def __init__(self, leases: JobLeases, question: str, failure: Exception) -> None:
        self._leases = leases
        self._question = question
        self._failure = failure

    def __getattr__(self, name: str) -> object:
        return self._fail if name == self._question else getattr(self._leases, name)

    async def _fail(self, *_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise self._failure


async def endings(
    bench: Bench, *, question: str = "", failure: Exception | None = None
) -> dict[str, str]:
    spans, consumer = RecordedSpans(), FakeConsumer()
    [job] = await bench.insert(a_job())
    if failure is not None:
        failing = Failing(bench.records.leases, question, failure)
        bench.records = replace(bench.records, leases=failing)  # type: ignore[arg-type] # the rest passes through
    consumer.put(a_delivery_of(job))
    async with Worker(bench, FakeJobRun(), consumer, tracer=spans.tracer).running():
        await trio.sleep(2_000)
    return spans.endings()


HANDLE, CLAIM, SETTLE = (
    "rabbitmq.consumer.handle_message",
    "service.claim_job",
    "service.settle_job",
)


async def test_a_job_that_ends_fails_no_span(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    assert await endings(bench) == {HANDLE: "ok", CLAIM: "ok", SETTLE: "ok"}


async def test_a_record_store_that_is_away_fails_the_claim(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    away = PortUnavailable("away")
    assert await endings(bench, question="claim", failure=away) == {
        HANDLE: "ok",
        CLAIM: "unavailable",
    }


async def test_an_unreadable_record_fails_claim_and_delivery(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    corrupt = RecordCorrupt("status")
    assert await endings(bench, question="claim", failure=corrupt) == {
        HANDLE: "reject_unreadable",
        CLAIM: corrupt.code,
    }


async def test_an_outcome_that_is_not_recorded_fails_its_settlement(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    ended = await endings(bench, question="finish", failure=PortUnavailable("away"))
    assert ended[SETTLE] == "unrecorded"
