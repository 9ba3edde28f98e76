"""What the reference left in its outbox is published by our worker, once (decisions)."""

import json
from typing import Any

import pymongo

from fetcher.consumer import verify_event
from tests.e2e.cluster import Cluster
from tests.reference_outbox import (
    COLLECTION,
    EVENT_TIME,
    MINUTE,
    a_record,
    event_id,
)
from tests.servers.waiting import eventually_sync


def test_the_references_outbox_is_drained_once_under_the_same_ids(cluster: Cluster) -> None:
    due = [
        a_record("PENDING", exchange=cluster.exchange),
        a_record("FAILED", age=6 * MINUTE, exchange=cluster.exchange, last_error="away"),
        a_record("PROCESSING", age=11 * MINUTE, exchange=cluster.exchange),
        a_record("INVALID", age=600 * MINUTE, exchange=cluster.exchange),
    ]
    left = [
        a_record("PUBLISHED", age=MINUTE, exchange=cluster.exchange),
        a_record("PROCESSING", age=MINUTE, exchange=cluster.exchange),
        a_record("INVALID", exchange=cluster.exchange, last_error="payload is not valid JSON"),
    ]
    broken = a_record("PENDING", payload="{")
    with pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client:
        outbox = client[cluster.mongo_name][COLLECTION]
        outbox.insert_many([*due, *left, broken])
        with cluster.worker():
            events = cluster.events(len(due))

            def all_ended() -> bool:
                open_ones = outbox.count_documents({"id": {"$in": [r["id"] for r in due]}})
                done = {"id": {"$in": [r["id"] for r in due]}, "status": "PUBLISHED"}
                return outbox.count_documents(done) == open_ones == len(due)

            eventually_sync(all_ended, deadline_seconds=20, what="all are marked")
            # Two more rounds of the repairer publish nothing again.
            outbox.insert_one(a_record("PENDING", exchange=cluster.exchange, id="last"))
            events += cluster.events(1)
        assert len(events) == len(due) + 1
        assert {e.header("ce-id") for e in events} >= {event_id(record) for record in due}
        for event in events:
            assert event.header("ce-time") == EVENT_TIME
            verify_event(
                event.headers,
                event.body,
                cluster.exchange,
                "job.completed",
                key=cluster.keys.external_hmac,
            )
            assert json.loads(event.body)["metadata"]["note"] == "a < b"
        states = {r["id"]: r["status"] for r in outbox.find({"id": {"$ne": "last"}})}
        assert [states[record["id"]] for record in left] == ["PUBLISHED", "PROCESSING", "INVALID"]
        assert states[broken["id"]] == "INVALID"
        assert len(states) == len(due) + len(left) + 1
