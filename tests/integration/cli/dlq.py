"""Letters and records that `fetcher dlq` finds."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from fetcher.adapters.dead_letters import dead_letter
from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.audit import AuditQuery
from fetcher.domain.jobs import Job
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import OutgoingMessage, RecordStore, RejectReason

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SIGNER = MessageSigner(KeyRing.from_text(KEY, version="1", previous="").current.internal_hmac)
INSERTERS = 20
REJECTED_AT = datetime(2026, 3, 14, 9, tzinfo=UTC)


def letter_of(
    job: Job, *, reason: RejectReason = RejectReason.UNREADABLE_JOB, key: bytes | None = None
) -> OutgoingMessage:
    body = encode_work_message(job)
    signer = MessageSigner(key) if key is not None else SIGNER
    signed = signer.headers(
        tenant="", body=body, exchange="", routing_key="work", timestamp=1773480413
    )
    headers = {**work_headers(job), **signed}
    return dead_letter(
        body=body,
        headers=headers,
        exchange="",
        routing_key="work",
        reason=reason,
        rejected_at=REJECTED_AT,
    )


async def insert_each(records: RecordStore, jobs: Sequence[Job]) -> None:
    for job in jobs:
        await records.jobs.insert(job)


def stored(tmp_path: Path, jobs: Sequence[Job]) -> None:
    """These records, in the data folder."""

    async def insert() -> None:
        with own_data_folder(tmp_path / "data") as folder:
            async with (
                open_sqlite_records(folder.database) as records,
                trio.open_nursery() as nursery,
            ):
                for first in range(INSERTERS):
                    nursery.start_soon(insert_each, records, jobs[first::INSERTERS])

    trio.run(insert)


def written(tmp_path: Path, letters: Sequence[OutgoingMessage]) -> None:
    """These letters, in the file of the embedded queue."""

    async def write() -> None:
        with own_data_folder(tmp_path / "data") as folder:
            async with open_event_log(folder.dead_letters) as log:
                for each in letters:
                    await log.publish(each)

    trio.run(write)


async def audited(tmp_path: Path) -> list[tuple[str, str]]:
    """Action and outcome of each entry, in their order; all are of whoever ran the command."""
    async with open_sqlite_records(tmp_path / "data" / "fetcher.db") as records:
        entries = (await records.audit.list_page(AuditQuery())).items
    assert {each.actor for each in entries} <= {"local"}
    return [(each.action.value, each.outcome) for each in reversed(entries)]


async def audited_targets(tmp_path: Path) -> list[str]:
    async with open_sqlite_records(tmp_path / "data" / "fetcher.db") as records:
        entries = (await records.audit.list_page(AuditQuery())).items
    return [each.target for each in reversed(entries)]


def undispatched(tmp_path: Path) -> set[str]:
    """They are claimed: a second call within the hour finds none of them."""

    async def claim() -> set[str]:
        found: set[str] = set()
        with own_data_folder(tmp_path / "data") as folder:
            async with open_sqlite_records(folder.database) as records:
                while claims := await records.dispatch.claim_due(limit=500, lease_seconds=3600):
                    found |= {str(claim.job.id) for claim in claims}
        return found

    return trio.run(claim)


def eventually_total(run: Callable[..., tuple[int, str]], total: int) -> Any:
    """The list, once the broker has put back what was in hand."""
    deadline = time.monotonic() + 10
    while True:
        code, told = run("list", "--json")
        assert code == 0, told
        found = json.loads(told)
        if found["total"] == total or time.monotonic() > deadline:
            assert found["total"] == total
            return found
        time.sleep(0.05)
