"""Draining what the reference left, over an outbox in memory."""

import json
from dataclasses import dataclass, field

import pytest
import trio.testing

from fetcher.actors.outbox_repairer import BATCH, OutboxRepairer
from fetcher.commands.publish_reference_events import PublishReferenceEvents
from fetcher.commands.send_event import SendEvent
from fetcher.consumer import verify_event
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.errors import PortError, PortUnavailable, Unroutable
from fetcher.domain.reference_events import ReferenceRecord
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import OutgoingMessage
from tests.reference_outbox import an_envelope
from tests.unit.actors.bench import Bench, now
from tests.unit.crypto.vectors import JOB_ID

KEY = bytes(range(32))


def a_claim(name: str = "r", payload: str = "") -> ReferenceRecord:
    return ReferenceRecord(
        key=name, token="t", record_id=name, payload=payload or json.dumps(an_envelope(JOB_ID))
    )


@dataclass
class FakeOutbox:
    due: list[ReferenceRecord] = field(default_factory=list)
    ended: list[tuple[str, str]] = field(default_factory=list)
    away: bool = False

    async def claim_due(self, *, limit: int) -> list[ReferenceRecord]:
        await self._reach()
        taken, self.due = self.due[:limit], self.due[limit:]
        return taken

    async def mark_published(self, record: ReferenceRecord) -> None:
        await self._reach()
        self.ended.append((record.record_id, "published"))

    async def postpone(self, record: ReferenceRecord, *, problem: str) -> None:
        await self._reach()
        self.ended.append((record.record_id, f"postponed: {problem}"))

    async def refuse(self, record: ReferenceRecord, *, problem: str) -> None:
        await self._reach()
        self.ended.append((record.record_id, f"refused: {problem}"))

    async def _reach(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.away:
            raise PortUnavailable("away")


@dataclass
class FakeBroker:
    taken: list[OutgoingMessage] = field(default_factory=list)
    failure: PortError | None = None

    async def publish(self, message: OutgoingMessage) -> None:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        self.taken.append(message)


@dataclass
class Drain:
    outbox: FakeOutbox = field(default_factory=FakeOutbox)
    broker: FakeBroker = field(default_factory=FakeBroker)
    observed: list[tuple[str, str]] = field(default_factory=list)
    require_route: bool = True
    tenant: Tenant = NO_TENANT

    def command(self) -> PublishReferenceEvents:
        return PublishReferenceEvents(
            outbox=self.outbox,
            sender=SendEvent(
                publisher=self.broker,
                signer=MessageSigner(KEY),
                require_route=self.require_route,
                now=now,
            ),
            observe=lambda record_id, result: self.observed.append((record_id, result)),
            tenant=self.tenant,
        )


async def test_an_event_goes_out_signed_for_its_own_route_and_is_marked() -> None:
    drain = Drain()
    drain.outbox.due = [a_claim()]
    assert await drain.command().publish_due(limit=5) == 1
    [message] = drain.broker.taken
    verify_event(message.headers, message.body, message.exchange, message.routing_key, key=KEY)
    assert message.headers["ce-id"] == bytearray(f"fetcher.job.completed.{JOB_ID}", "ascii")
    assert drain.outbox.ended == [("r", "published")]
    assert drain.observed == [("r", "ok")]


@pytest.mark.parametrize(
    ("failure", "require_route", "ended", "observed"),
    [
        (PortUnavailable("away"), True, "postponed: unavailable", "unavailable"),
        (Unroutable("no queue"), True, "postponed: unroutable", "unroutable"),
        (Unroutable("no queue"), False, "published", "unrouted"),
    ],
)
async def test_a_failure_of_transport_is_tried_again(
    failure: PortError, require_route: bool, ended: str, observed: str
) -> None:
    drain = Drain(require_route=require_route)
    drain.broker.failure = failure
    drain.outbox.due = [a_claim("first"), a_claim("second")]
    assert await drain.command().publish_due(limit=5) == 2
    assert drain.outbox.ended == [("first", ended), ("second", ended)]
    assert drain.observed == [("first", observed), ("second", observed)]


async def test_a_record_that_can_never_be_sent_becomes_invalid_and_holds_up_no_other() -> None:
    drain = Drain()
    unsignable = json.dumps(an_envelope(JOB_ID, exchange="a\nb"))
    drain.outbox.due = [a_claim("broken", "{"), a_claim("lf", unsignable), a_claim("good")]
    await drain.command().publish_due(limit=5)
    (_, broken), (_, lf), good = drain.outbox.ended
    assert broken == "refused: event envelope is not JSON"
    assert lf.startswith("refused: ")
    assert good == ("good", "published")
    assert drain.observed == [("broken", "refused"), ("lf", "refused"), ("good", "ok")]


async def test_a_tenants_outbox_sends_no_event_in_the_name_of_another() -> None:
    drain = Drain(tenant=Tenant("acme"))
    drain.outbox.due = [
        a_claim(name, json.dumps(an_envelope(JOB_ID, event={"TenantID": named})))
        for name, named in (("ours", "acme"), ("theirs", "globex"), ("of-none", "single-tenant"))
    ]
    await drain.command().publish_due(limit=5)
    refused = "refused: event tenant is another one than the outbox's"
    assert drain.outbox.ended == [("ours", "published"), ("theirs", refused), ("of-none", refused)]
    assert [message.headers["X-Tenant-ID"] for message in drain.broker.taken] == ["acme"]


async def test_an_envelope_of_another_version_is_left_for_who_knows_it() -> None:
    drain = Drain()
    drain.outbox.due = [a_claim("new", json.dumps(an_envelope(JOB_ID, version=2)))]
    await drain.command().publish_due(limit=5)
    assert drain.outbox.ended == [("new", "postponed: unknown version")]
    assert drain.observed == [("new", "unknown_envelope")]


async def test_a_store_that_is_away_ends_nothing() -> None:
    drain = Drain()
    drain.outbox.away = True
    assert await drain.command().publish_due(limit=5) == 0
    drain.outbox.away = False
    drain.outbox.due = [a_claim()]
    publish = drain.broker.publish

    async def publish_then_lose_the_store(message: OutgoingMessage) -> None:
        await publish(message)
        drain.outbox.away = True

    drain.broker.publish = publish_then_lose_the_store  # type: ignore[method-assign] # a fault
    assert await drain.command().publish_due(limit=5) == 1
    assert len(drain.broker.taken) == 1
    assert drain.outbox.ended == []


async def test_the_repairer_drains_page_after_page(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    drain = Drain()
    rounds: list[int] = []
    drain.outbox.due = [a_claim(str(n)) for n in range(2 * BATCH + 3)]

    class OwnEvents:
        async def publish_due(self, *, limit: int, job_ids: object = None) -> int:
            await trio.lowlevel.checkpoint()
            rounds.append(len(drain.outbox.ended))
            return 0

    repairer = OutboxRepairer(
        events=OwnEvents(),
        reference=drain.command(),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(repairer.run)
        await trio.sleep(1)
        assert len(drain.outbox.ended) == 2 * BATCH + 3
        # Our own events come before each of its pages.
        assert rounds == [0, BATCH, 2 * BATCH]
        drain.outbox.due = [a_claim("late")]
        await trio.sleep(30)
        assert drain.outbox.ended[-1] == ("late", "published")
        nursery.cancel_scope.cancel()
