"""Sent by one side, judged by the other: the work message and its signature."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
import trio

from fetcher.commands.send_work import SendWork
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import MessageSigner, MessageVerifier
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.work_message import WorkMessage, encode_work_message
from fetcher.ports import OutgoingMessage, RejectReason

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
QUEUE = "fetcher.extract-external-data.queue"
TENANT = Tenant("tenant-a")


@dataclass(frozen=True)
class Received:
    """A delivery, as far as judging it goes."""

    body: bytes
    headers: Mapping[str, object]
    exchange: str
    routing_key: str

    async def ack(self) -> None: ...

    async def reject(self, reason: RejectReason) -> None: ...

    async def requeue(self) -> None: ...


class Publisher:
    def __init__(self) -> None:
        self.sent: list[OutgoingMessage] = []

    async def publish(self, message: OutgoingMessage) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(message)


JOB = Job(
    id=new_job_id(),
    status=JobStatus.PENDING,
    created_at=NOW,
    mapped_fields={"sales_db": {"orders": ("id",)}},
    request_hash="h",
    metadata={"source": "acme-reports"},
    request_id="r-7",
)
BODY = encode_work_message(JOB)


async def received(key: bytes = KEY, *, tenant: Tenant = NO_TENANT) -> Received:
    publisher = Publisher()
    sender = SendWork(
        publisher=publisher,
        signer=MessageSigner(key),
        queue=QUEUE,
        now=lambda: NOW,
        tenant=tenant,
    )
    await sender.send(JOB)
    [message] = publisher.sent
    return Received(message.body, dict(message.headers), message.exchange, message.routing_key)


def judged(
    delivery: Received, *, at: datetime = NOW, tenant: Tenant = NO_TENANT
) -> WorkMessage | RejectReason:
    verifier = MessageVerifier([KEY], time_decides=False)
    return VerifyWork(verifier=verifier, now=lambda: at, tenant=tenant).verify(delivery)


async def test_what_is_sent_is_what_is_taken() -> None:
    assert judged(await received()) == WorkMessage(job_id=JOB.id, tenant_id=None, request_id="r-7")


@pytest.mark.parametrize(
    "age",
    [timedelta(minutes=6), timedelta(days=3), timedelta(seconds=-31), timedelta(days=-1)],
)
async def test_the_age_of_a_message_never_decides(age: timedelta) -> None:
    """Nor how far its manager's clock is ahead of ours (decision 047)."""
    assert isinstance(judged(await received(), at=NOW + age), WorkMessage)


@pytest.mark.parametrize(
    "change",
    [
        {"body": b'{"jobId":"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"}'},
        {"routing_key": "another.queue"},
        {"exchange": "fetcher.extract-external-data.exchange"},
        {"headers": {}},
    ],
)
async def test_a_changed_body_route_or_header_is_rejected(change: dict[str, object]) -> None:
    delivery = replace(await received(), **change)  # type: ignore[arg-type] # one field at a time
    assert judged(delivery) is RejectReason.BAD_SIGNATURE


async def test_a_tenant_that_was_added_is_rejected() -> None:
    delivery = await received()
    forged = replace(delivery, headers={**delivery.headers, "X-Tenant-ID": "tenant-a"})
    assert judged(forged) is RejectReason.BAD_SIGNATURE


async def test_a_tenants_message_names_it_and_is_signed_for_it() -> None:
    ours = await received(tenant=TENANT)
    assert ours.headers["X-Tenant-ID"] == "tenant-a"
    assert ours.headers["x-message-signature"] == MessageSigner(KEY).sign(
        tenant="tenant-a",
        body=ours.body,
        exchange="",
        routing_key=QUEUE,
        timestamp=int(NOW.timestamp()),
    )
    assert judged(ours, tenant=TENANT) == WorkMessage(
        job_id=JOB.id, tenant_id="tenant-a", request_id="r-7"
    )
    assert "X-Tenant-ID" not in (await received()).headers


@pytest.mark.parametrize("sent", [None, "", "tenant-b", "TENANT-A", "tenant-a ", b"tenant-a", 7])
async def test_with_tenants_a_message_must_name_the_queues(sent: object) -> None:
    """Also before its signature is looked at: a key of somebody else would be told else."""
    signed = MessageSigner(KEY).headers(
        tenant=sent if isinstance(sent, str) else "",
        body=BODY,
        exchange="",
        routing_key=QUEUE,
        timestamp=int(NOW.timestamp()),
    )
    named: dict[str, object] = {} if sent is None else {"X-Tenant-ID": sent}
    genuine = Received(BODY, {**signed, **named}, "", QUEUE)
    assert judged(genuine, tenant=TENANT) is RejectReason.TENANT_MISMATCH
    unsigned = Received(BODY, named, "", QUEUE)
    assert judged(unsigned, tenant=TENANT) is RejectReason.TENANT_MISMATCH


async def test_a_signature_made_for_one_tenant_counts_for_no_other() -> None:
    of_another = await received(tenant=Tenant("tenant-b"))
    replayed = replace(of_another, headers={**of_another.headers, "X-Tenant-ID": "tenant-a"})
    assert judged(replayed, tenant=TENANT) is RejectReason.BAD_SIGNATURE
    of_nobody = await received()
    named = replace(of_nobody, headers={**of_nobody.headers, "X-Tenant-ID": "tenant-a"})
    assert judged(named, tenant=TENANT) is RejectReason.BAD_SIGNATURE


async def test_another_key_is_rejected() -> None:
    assert judged(await received(OTHER_KEY)) is RejectReason.BAD_SIGNATURE


async def test_a_signed_message_that_names_no_job_is_malformed() -> None:
    body = b'{"jobId":7}'
    signed = MessageSigner(KEY).headers(
        tenant="", body=body, exchange="", routing_key=QUEUE, timestamp=int(NOW.timestamp())
    )
    assert judged(Received(body, signed, "", QUEUE)) is RejectReason.MALFORMED


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_signature_of_the_body_alone_counts_only_where_it_is_allowed_and_is_told(
    allowed: bool,
) -> None:
    delivery = await received()
    stamp = int(NOW.timestamp())
    legacy = hmac.new(KEY, b"%d.%s" % (stamp, delivery.body), hashlib.sha256).hexdigest()
    told: list[str] = []
    verifier = VerifyWork(
        verifier=MessageVerifier([KEY], allow_legacy=allowed),
        now=lambda: NOW,
        saw_legacy=lambda: told.append("legacy"),
    )
    old = replace(delivery, headers={**delivery.headers, "x-message-signature": legacy})
    assert isinstance(verifier.verify(delivery), WorkMessage)
    assert told == []
    assert isinstance(verifier.verify(old), WorkMessage if allowed else RejectReason)
    assert told == (["legacy"] if allowed else [])


@pytest.mark.parametrize(("late", "is_taken"), [(-1, True), (0, False), (1, False)])
async def test_after_its_end_a_former_key_is_a_reason_of_its_own(late: int, is_taken: bool) -> None:
    until = NOW + timedelta(hours=1)
    verifier = VerifyWork(
        verifier=MessageVerifier([KEY, OTHER_KEY], previous_until=until.timestamp()),
        now=lambda: until + timedelta(seconds=late),
    )
    judgement = verifier.verify(await received(OTHER_KEY))
    assert isinstance(judgement, WorkMessage) is is_taken
    assert is_taken or judgement is RejectReason.PREVIOUS_KEY_ENDED
    assert isinstance(verifier.verify(await received(KEY)), WorkMessage)
