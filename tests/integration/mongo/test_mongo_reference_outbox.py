"""The reference's outbox collection, as we take from it and mark it (spec worker-and-events 8)."""

from datetime import timedelta
from typing import Any

import pytest
import trio
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.reference_events import ReferenceRecord
from fetcher.ports import ReferenceOutbox
from tests.reference_outbox import COLLECTION, MINUTE, a_record

pytestmark = pytest.mark.integration

Raw = Database[dict[str, Any]]


@pytest.fixture
def outbox(records: MongoRecords) -> ReferenceOutbox:
    assert records.reference_events is not None
    return records.reference_events


def put(raw: Raw, *documents: dict[str, Any]) -> list[str]:
    raw[COLLECTION].insert_many(documents)
    return [document["id"] for document in documents]


def stored(raw: Raw, record_id: str) -> dict[str, Any]:
    document = raw[COLLECTION].find_one({"id": record_id})
    assert document is not None
    return document


def ids(claims: list[ReferenceRecord]) -> list[str]:
    return [claim.record_id for claim in claims]


async def test_stuck_failed_pending_and_given_up_records_are_taken_in_this_order(
    outbox: ReferenceOutbox, raw: Raw
) -> None:
    given_up, newer, older, failed, stuck = put(
        raw,
        a_record("INVALID", age=90 * MINUTE),
        a_record("PENDING"),
        a_record("PENDING", age=MINUTE),
        a_record("FAILED", age=6 * MINUTE),
        a_record("PROCESSING", age=11 * MINUTE),
    )
    assert ids(await outbox.claim_due(limit=25)) == [stuck, failed, older, newer, given_up]


async def test_what_another_works_on_rests_or_is_final_is_left(
    outbox: ReferenceOutbox, raw: Raw
) -> None:
    documents = (
        a_record("PROCESSING", age=9 * MINUTE),
        a_record("FAILED", age=4 * MINUTE),
        a_record("PUBLISHED", age=90 * MINUTE),
        a_record("INVALID", age=90 * MINUTE, last_error="payload is not valid JSON"),
        a_record("PENDING", event_type="another.kind"),
    )
    put(raw, *documents)
    before = list(raw[COLLECTION].find())
    assert await outbox.claim_due(limit=25) == []
    assert list(raw[COLLECTION].find()) == before


async def test_a_claim_looks_like_one_of_the_reference(outbox: ReferenceOutbox, raw: Raw) -> None:
    document = a_record("PENDING", age=MINUTE)
    [record_id] = put(raw, document)
    [claim] = await outbox.claim_due(limit=25)
    assert claim.payload == document["payload"]
    after = stored(raw, record_id)
    assert (after["status"], after["claim_token"]) == ("PROCESSING", claim.token)
    assert after["updated_at"] - document["updated_at"] > timedelta(seconds=50)
    assert {n: v for n, v in after.items() if n in ("attempts", "created_at")} == {
        "attempts": 0,
        "created_at": document["created_at"].replace(
            microsecond=document["created_at"].microsecond // 1000 * 1000
        ),
    }


async def test_each_record_is_claimed_by_one(outbox: ReferenceOutbox, raw: Raw) -> None:
    wanted = put(raw, *(a_record("PENDING") for _ in range(40)))
    taken: list[str] = []

    async def take() -> None:
        while claims := await outbox.claim_due(limit=5):
            taken.extend(ids(claims))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)
    while claims := await outbox.claim_due(limit=25):
        taken.extend(ids(claims))
    assert sorted(taken) == sorted(wanted)


async def test_limit_holds_over_all_kinds(outbox: ReferenceOutbox, raw: Raw) -> None:
    put(raw, *(a_record("FAILED", age=6 * MINUTE) for _ in range(2)), a_record("PENDING"))
    assert len(await outbox.claim_due(limit=2)) == 2
    assert len(await outbox.claim_due(limit=2)) == 1


async def test_published_record_is_marked_as_the_reference_does(
    outbox: ReferenceOutbox, raw: Raw
) -> None:
    [record_id] = put(raw, a_record("FAILED", age=6 * MINUTE, last_error="away"))
    [claim] = await outbox.claim_due(limit=25)
    await outbox.mark_published(claim)
    after = stored(raw, record_id)
    assert after["status"] == "PUBLISHED"
    assert after["published_at"] == after["updated_at"]
    assert "claim_token" not in after


@pytest.mark.parametrize(("way", "status"), [("postpone", "FAILED"), ("refuse", "INVALID")])
async def test_record_that_did_not_go_out_says_why_and_rests(
    outbox: ReferenceOutbox, raw: Raw, way: str, status: str
) -> None:
    [record_id] = put(raw, a_record("PENDING"))
    [claim] = await outbox.claim_due(limit=25)
    await getattr(outbox, way)(claim, problem="unavailable")
    after = stored(raw, record_id)
    assert (after["status"], after["last_error"]) == (status, "unavailable")
    # The reference gives up at ten attempts; transport failures of ours shall not bring it there.
    assert after["attempts"] == 0
    assert "claim_token" not in after
    assert await outbox.claim_due(limit=25) == []


async def test_claim_that_another_has_taken_over_ends_nothing(
    outbox: ReferenceOutbox, raw: Raw
) -> None:
    [record_id] = put(raw, a_record("PENDING"))
    [claim] = await outbox.claim_due(limit=25)
    raw[COLLECTION].update_one({"id": record_id}, {"$set": {"claim_token": "another"}})
    before = stored(raw, record_id)
    await outbox.mark_published(claim)
    await outbox.postpone(claim, problem="unavailable")
    await outbox.refuse(claim, problem="event body is no object")
    assert stored(raw, record_id) == before


@pytest.mark.parametrize("payload", [None, 7, {"version": 1}])
async def test_record_without_a_payload_text_is_claimed_as_an_empty_one(
    outbox: ReferenceOutbox, raw: Raw, payload: object
) -> None:
    document = a_record("PENDING") | {"payload": payload}
    put(raw, document)
    [claim] = await outbox.claim_due(limit=25)
    assert claim.payload == ""


async def test_a_database_without_the_collection_gets_none(
    outbox: ReferenceOutbox, raw: Raw
) -> None:
    raw.drop_collection(COLLECTION)
    assert await outbox.claim_due(limit=25) == []
    assert COLLECTION not in raw.list_collection_names()
