"""Relay and repairer, with the use case that publishes, over records in memory."""

import random
from contextlib import nullcontext
from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.actors.messages import RelayHint
from fetcher.actors.outbox_relay import OutboxRelay
from fetcher.actors.outbox_repairer import REPAIR_SECONDS, OutboxRepairer
from fetcher.adapters.breaker import OPEN_SECONDS, CircuitBreaker
from fetcher.commands.publish_events import PublishEvents
from fetcher.crypto.signer import MessageSigner, MessageVerifier, SignatureOutcome
from fetcher.domain.errors import PortUnavailable, Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import OutgoingMessage
from tests.unit.actors.bench import Bench, a_job, an_outcome, now

KEY = bytes(range(32))


class Broker:
    """Takes messages, is away until a time, or has no queue for them until a time."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, OutgoingMessage]] = []
        self.away_until = -1.0
        self.unbound_until = -1.0
        self.confirm_seconds = 0.0
        self.breaker: CircuitBreaker | None = None

    async def publish(self, message: OutgoingMessage) -> None:
        with self.breaker.attempt() if self.breaker is not None else nullcontext():
            await self._publish(message)

    async def _publish(self, message: OutgoingMessage) -> None:
        await trio.sleep(self.confirm_seconds)
        if trio.current_time() < self.away_until:
            raise PortUnavailable("away")
        if trio.current_time() < self.unbound_until:
            raise Unroutable("no queue")
        self.taken.append((trio.current_time(), message))

    def ids(self) -> list[str]:
        return [bytes(m.headers["ce-id"]).decode() for _, m in self.taken]  # type: ignore[arg-type] # a bytearray


class Outbox:
    def __init__(
        self, bench: Bench, *, require_route: bool = True, tenant: Tenant = NO_TENANT
    ) -> None:
        self.bench = bench
        self.broker = Broker()
        self.observed: list[tuple[JobId, str]] = []
        self.took: list[float] = []
        self.events = PublishEvents(
            outbox=bench.records.events,
            publisher=self.broker,
            signer=MessageSigner(KEY),
            exchange="fetcher.job.events",
            source="//acme.fetcher/worker-1",
            require_route=require_route,
            now=now,
            observe=lambda job_id, result: self.observed.append((job_id, result)),
            took=self.took.append,
            tenant=tenant,
        )
        self.relay = OutboxRelay(
            events=self.events,
            hints=bench.relay_hints,
            lifecycle=bench.lifecycle,
        )
        self.repairer = OutboxRepairer(events=self.events)

    async def ended_job(self) -> Job:
        [job] = await self.bench.insert(a_job())
        claim = await self.bench.records.leases.claim(job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        await self.bench.records.leases.finish(
            claim.lease, an_outcome(JobStatus.COMPLETED, claim.job)
        )
        return job


async def test_a_hint_publishes_the_event_at_once_signed_for_its_route(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    outbox = Outbox(bench)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.relay.run)
        await trio.sleep(3)
        job = await outbox.ended_job()
        bench.relay_hints.offer(RelayHint(job.id))
        await trio.sleep(0.1)
        [(at, message)] = outbox.broker.taken
        assert at == 3.0
        assert (message.exchange, message.routing_key) == ("fetcher.job.events", "job.completed")
        assert outbox.broker.ids() == [f"fetcher.job.completed.{job.id}"]
        outcome = MessageVerifier([KEY]).verify(
            message.headers,
            message.body,
            exchange=message.exchange,
            routing_key=message.routing_key,
            now=None,
        )
        assert outcome is SignatureOutcome.VALID
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert not stored.event_pending
        assert outbox.took == [pytest.approx(0.1, abs=0.2)]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("tenant", "told"), [(NO_TENANT, "single-tenant"), (Tenant("tenant-a"), "tenant-a")]
)
async def test_an_event_says_and_is_signed_for_whom_it_is(
    bench: Bench, tenant: Tenant, told: str
) -> None:
    outbox = Outbox(bench, tenant=tenant)
    await outbox.ended_job()
    assert await outbox.events.publish_due(limit=1) == 1
    [(_, message)] = outbox.broker.taken
    assert message.headers["ce-tenantid"] == bytearray(told, "ascii")
    assert message.headers["X-Tenant-ID"] == told
    stamp = message.headers["t"]
    assert isinstance(stamp, str)
    assert message.headers["x-message-signature"] == MessageSigner(KEY).sign(
        tenant=told,
        body=message.body,
        exchange="fetcher.job.events",
        routing_key="job.completed",
        timestamp=int(stamp),
    )


async def test_events_of_one_tenant_that_cannot_be_sent_hold_up_no_other_tenants(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bad, good = (Outbox(Bench(), tenant=Tenant(name)) for name in ("bad", "good"))
    bad.broker.away_until = 3600.0
    stuck, sent = await bad.ended_job(), await good.ended_job()
    async with trio.open_nursery() as nursery:
        for outbox in (bad, good):
            nursery.start_soon(outbox.repairer.run)
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert good.observed == [(sent.id, "ok")]
    assert set(bad.observed) == {(stuck.id, "unavailable")}
    assert good.broker.taken[0][0] < 1
    assert bad.broker.taken == []


async def test_the_repairer_finds_within_30_seconds_what_no_hint_told_of(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    outbox = Outbox(bench)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(1)
        jobs = [await outbox.ended_job() for _ in range(60)]
        await trio.sleep(30)
        assert sorted(outbox.broker.ids()) == sorted(f"fetcher.job.completed.{j.id}" for j in jobs)
        nursery.cancel_scope.cancel()


async def test_a_broker_that_is_away_for_two_hours_delays_events_and_loses_none(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    outbox = Outbox(bench)
    outbox.broker.away_until = 7200
    job = await outbox.ended_job()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(7200)
        assert outbox.broker.taken == []
        await trio.sleep(330 + 30)
        assert outbox.broker.ids() == [f"fetcher.job.completed.{job.id}"]
        assert (job.id, "unavailable") in outbox.observed
        nursery.cancel_scope.cancel()


async def test_events_that_the_breaker_kept_back_follow_soon_after_the_broker_is_back(
    autojump_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not tried is not failed: all would wait five minutes, as those do that were last tried."""
    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    outbox = Outbox(bench)
    outbox.broker.breaker = CircuitBreaker()
    outbox.broker.away_until = 3600.0
    for _ in range(30):
        await outbox.ended_job()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(3600 + OPEN_SECONDS + 3 * REPAIR_SECONDS)
        nursery.cancel_scope.cancel()
    # the others were tried in the five minutes before, and failed
    assert len(outbox.broker.ids()) == 24


async def test_the_time_of_an_event_is_fixed_with_its_mark_and_the_signature_is_new_each_time(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Published, but the mark could not be cleared: sent again, to be told by the same id."""
    outbox = Outbox(bench)
    job = await outbox.ended_job()
    cleared = bench.records.events.mark_published

    async def store_away(job_id: JobId) -> None:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("away")

    bench.records.events.mark_published = store_away  # type: ignore[method-assign] # a fault
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(1)
        bench.records.events.mark_published = cleared  # type: ignore[method-assign] # mended
        await trio.sleep(65)
        nursery.cancel_scope.cancel()
    (_, first), (_, again) = outbox.broker.taken
    assert outbox.broker.ids() == [f"fetcher.job.completed.{job.id}"] * 2
    assert first.headers["ce-time"] == again.headers["ce-time"]
    assert first.body == again.body
    assert first.headers["t"] != again.headers["t"]
    assert first.headers["x-message-signature"] != again.headers["x-message-signature"]


@pytest.mark.parametrize(("require_route", "sent"), [(True, 1), (False, 0)])
async def test_an_event_without_a_queue_waits_unless_routes_are_not_required(
    autojump_clock: trio.testing.MockClock, bench: Bench, require_route: bool, sent: int
) -> None:
    outbox = Outbox(bench, require_route=require_route)
    outbox.broker.unbound_until = 60
    job = await outbox.ended_job()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(10)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.event_pending is require_route
        await trio.sleep(200)
        assert len(outbox.broker.taken) == sent
        results = {result for _, result in outbox.observed}
        assert results == ({"unroutable", "ok"} if require_route else {"unrouted"})
        nursery.cancel_scope.cancel()


async def test_the_last_round_of_a_drain_publishes_what_is_due_and_ends(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    outbox = Outbox(bench)
    jobs = [await outbox.ended_job() for _ in range(120)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.relay.run)
        await trio.sleep(1)
        assert outbox.broker.taken == []
        bench.lifecycle.last_round.set()
    assert len(outbox.broker.taken) == len(jobs)


async def test_two_publishers_share_the_work_without_a_repeat(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    first, second = Outbox(bench), Outbox(bench)
    jobs = [await first.ended_job() for _ in range(50)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.repairer.run)
        nursery.start_soon(second.repairer.run)
        await trio.sleep(29)
        nursery.cancel_scope.cancel()
    ids = first.broker.ids() + second.broker.ids()
    assert sorted(ids) == sorted(f"fetcher.job.completed.{job.id}" for job in jobs)


async def test_events_of_a_round_are_published_side_by_side(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    outbox = Outbox(bench)
    outbox.broker.confirm_seconds = 1.0
    jobs = [await outbox.ended_job() for _ in range(6)]
    assert await outbox.events.publish_due(limit=6) == 6
    assert [at for at, _ in outbox.broker.taken] == [1.0] * 4 + [2.0] * 2
    assert sorted(outbox.broker.ids()) == sorted(f"fetcher.job.completed.{job.id}" for job in jobs)


async def test_the_last_round_lets_the_publish_at_hand_end(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Cut off, its event would stay leased, and would be sent again by whoever comes next."""
    outbox = Outbox(bench)
    job = await outbox.ended_job()
    publish = outbox.broker.publish

    async def publish_slowly(message: OutgoingMessage) -> None:
        await trio.sleep(3)
        await publish(message)

    outbox.broker.publish = publish_slowly  # type: ignore[method-assign] # a slow broker
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.relay.run)
        bench.relay_hints.offer(RelayHint(job.id))
        await trio.sleep(1)
        bench.lifecycle.last_round.set()
    assert outbox.broker.ids() == [f"fetcher.job.completed.{job.id}"]
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert not stored.event_pending


async def test_an_event_that_may_not_be_sent_stays_is_told_of_and_holds_up_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Over 1 MiB: refused, its job ended all the same."""
    outbox = Outbox(bench)
    [large] = await bench.insert(a_job())
    claim = await bench.records.leases.claim(large.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    outcome = an_outcome(JobStatus.COMPLETED, claim.job)
    body = '{"x":"' + "y" * 1_048_576 + '"}'
    await bench.records.leases.finish(
        claim.lease, replace(outcome, event=replace(outcome.event, payload=body))
    )
    others = [await outbox.ended_job() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.repairer.run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert sorted(outbox.broker.ids()) == sorted(f"fetcher.job.completed.{j.id}" for j in others)
    assert (large.id, "refused") in outbox.observed
    stored = await bench.records.jobs.get(large.id)
    assert stored is not None
    assert (stored.status, stored.event_pending) == (JobStatus.COMPLETED, True)
