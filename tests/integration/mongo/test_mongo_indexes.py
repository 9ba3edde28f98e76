"""The indexes, by name, keys and options, and how the unique one on active jobs comes about."""

from typing import Any

import pytest
from pymongo.database import Database

from fetcher.adapters.mongo import IndexedDatabases, MongoRecords, open_mongo_records, server
from fetcher.domain.errors import DuplicateActiveJob, PortUnavailable
from tests.integration.mongo.builders import a_job, wall_clock

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

LIVE = {"deleted_at": None}
CONNECTION_INDEXES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "idx_connection_config_name": (
        {"config_name": 1},
        {"unique": True, "partialFilterExpression": LIVE},
    ),
    "idx_connection_created": ({"created_at": -1}, {"partialFilterExpression": LIVE}),
    "idx_connection_database_name": ({"database_name": 1}, {"partialFilterExpression": LIVE}),
}
JOB_INDEXES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "idx_job_status": ({"status": 1}, {}),
    "idx_job_status_created": (
        {"status": 1, "created_at": -1},
        {"partialFilterExpression": {"status": "processing"}},
    ),
    "idx_job_created": ({"created_at": -1}, {}),
    "idx_job_completed": ({"completed_at": -1}, {}),
    "idx_job_status_completed": (
        {"status": 1, "completed_at": -1},
        {"partialFilterExpression": {"status": "completed"}},
    ),
    "idx_job_hash_created": ({"request_hash": 1, "created_at": -1}, {}),
    "idx_job_terminal_event_repair": (
        {"metadata.terminalEventPending": 1, "status": 1, "completed_at": 1, "created_at": 1},
        {"partialFilterExpression": {"metadata.terminalEventPending": True}},
    ),
    "uniq_job_hash_active": (
        {"request_hash": 1},
        {"unique": True, "partialFilterExpression": {"dedup_active": True}},
    ),
}
BREAKER_INDEXES = {
    "idx_connection_breaker_forgotten": ({"changed_at": 1}, {"expireAfterSeconds": 86400})
}
AUDIT_INDEXES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "idx_audit_time": ({"time": -1, "_id": -1}, {}),
    "idx_audit_target": ({"target": 1, "time": -1, "_id": -1}, {}),
    "idx_audit_actor": ({"actor": 1, "time": -1, "_id": -1}, {}),
    "idx_audit_action": ({"action": 1, "time": -1, "_id": -1}, {}),
}
OWN_INDEXES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "idx_job_dispatch": (
        {"dispatched_at": 1, "created_at": 1},
        {"partialFilterExpression": {"status": "pending"}},
    ),
    "idx_job_lease": (
        {"lease_until": 1},
        {"partialFilterExpression": {"status": "processing"}},
    ),
    "idx_job_event_due": (
        {"event_due_at": 1, "completed_at": 1},
        {"partialFilterExpression": {"metadata.terminalEventPending": True}},
    ),
    "idx_job_cleanup": (
        {"cleanup_due": 1},
        {"partialFilterExpression": {"cleanup_due": {"$exists": True}}},
    ),
    "idx_job_kept_result": (
        {"completed_at": 1, "_id": 1},
        {"partialFilterExpression": {"status": "completed", "result_deleted_at": None}},
    ),
    "idx_job_datasources": (
        {"datasources": 1},
        {"partialFilterExpression": {"dedup_active": True}},
    ),
    "idx_job_list": ({"created_at": -1, "_id": -1}, {}),
    "idx_job_list_status": ({"status": 1, "created_at": -1, "_id": -1}, {}),
    "idx_job_ended": ({"completed_at": -1, "_id": -1}, {}),
    "idx_job_failed": (
        {"completed_at": -1, "_id": -1},
        {"partialFilterExpression": {"status": "failed"}},
    ),
    "idx_job_list_datasources": ({"datasources": 1, "created_at": -1, "_id": -1}, {}),
    "idx_job_pending_source": (
        {"status": 1, "metadata.source": 1},
        {"partialFilterExpression": {"status": "pending"}},
    ),
    "uniq_job_idempotency_key": (
        {"idempotency_key": 1},
        {"unique": True, "partialFilterExpression": {"idempotency_key": {"$exists": True}}},
    ),
}


@pytest.fixture
def bare(raw: Raw) -> Raw:
    """The database before anybody has opened it: no collection, no index."""
    raw.client.drop_database(raw.name)
    return raw


def indexes_of(raw: Raw, collection: str) -> dict[str, tuple[dict[str, int], dict[str, Any]]]:
    return {
        index["name"]: (
            dict(index["key"]),
            {
                name: dict(value) if name == "partialFilterExpression" else value
                for name, value in index.items()
                if name not in ("v", "key", "name")
            },
        )
        for index in raw[collection].list_indexes()
        if index["name"] != "_id_"
    }


async def test_an_empty_database_gets_exactly_these_indexes(
    bare: Raw, records: MongoRecords
) -> None:
    await records.jobs.latest_ended()
    assert indexes_of(bare, "connection") == CONNECTION_INDEXES
    assert indexes_of(bare, "connection_breaker") == BREAKER_INDEXES
    assert indexes_of(bare, "audit") == AUDIT_INDEXES
    assert indexes_of(bare, "job") == JOB_INDEXES | OWN_INDEXES


async def test_keys_of_an_index_keep_their_order(bare: Raw, records: MongoRecords) -> None:
    await records.jobs.latest_ended()
    for name, (keys, _) in indexes_of(bare, "job").items():
        assert list(keys) == list((JOB_INDEXES | OWN_INDEXES)[name][0])


async def test_outdated_indexes_of_connections_are_dropped(
    bare: Raw, records: MongoRecords
) -> None:
    bare["connection"].create_index("product_name", name="idx_connection_unassigned")
    bare["connection"].create_index(
        [("product_name", 1), ("config_name", 1)], name="idx_connection_product_config"
    )
    bare["connection"].create_index("other", name="somebody_elses")
    await records.jobs.latest_ended()
    names = indexes_of(bare, "connection").keys()
    assert names == CONNECTION_INDEXES.keys() | {"somebody_elses"}


async def test_an_index_with_the_same_name_or_keys_counts_as_there_and_hides_no_other(
    bare: Raw, records: MongoRecords
) -> None:
    bare["job"].create_index("other", name="idx_job_status")
    bare["job"].create_index([("created_at", -1)], name="made_by_hand", unique=True)
    await records.jobs.latest_ended()
    names = indexes_of(bare, "job").keys()
    assert {"idx_job_completed", "idx_job_hash_created", "uniq_job_hash_active"} <= names
    assert indexes_of(bare, "job")["idx_job_status"][0] == {"other": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"unique": True},
        {"partialFilterExpression": {"dedup_active": True}},
        {"unique": True, "partialFilterExpression": {"status": "pending"}},
    ],
)
async def test_another_form_of_the_unique_index_is_replaced(
    bare: Raw, records: MongoRecords, options: dict[str, Any]
) -> None:
    bare["job"].create_index("request_hash", name="uniq_job_hash_active", **options)
    await records.jobs.latest_ended()
    made = indexes_of(bare, "job")["uniq_job_hash_active"]
    assert made == JOB_INDEXES["uniq_job_hash_active"]


async def test_dedup_active_is_put_right_before_the_unique_index_is_made(
    bare: Raw, records: MongoRecords
) -> None:
    flags: dict[str, dict[str, Any]] = {
        "pending": {},
        "processing": {"dedup_active": False},
        "completed": {"dedup_active": True},
        "failed": {},
        "cancelled": {"dedup_active": True},
    }
    for number, (status, flag) in enumerate(flags.items()):
        job = {"_id": bytes([number] * 16), "status": status, "request_hash": status, **flag}
        bare["job"].insert_one({**job, "created_at": wall_clock()})
    await records.jobs.latest_ended()
    active = {job["status"]: job["dedup_active"] for job in bare["job"].find()}
    assert active == {
        "pending": True,
        "processing": True,
        "completed": False,
        "failed": False,
        "cancelled": False,
    }


async def test_with_the_unique_index_in_place_no_record_is_touched(
    bare: Raw, asyncio_room: None, mongo_uri: str
) -> None:
    async with open_mongo_records(mongo_uri, bare.name, allow_plaintext=True) as records:
        await records.jobs.latest_ended()
    bare["job"].insert_one({"_id": 1, "status": "completed", "dedup_active": "odd"})
    async with open_mongo_records(mongo_uri, bare.name, allow_plaintext=True) as records:
        await records.jobs.get(a_job().id)
    assert bare["job"].find_one() == {"_id": 1, "status": "completed", "dedup_active": "odd"}


async def test_active_duplicates_stop_the_store_until_somebody_cleans_up(
    bare: Raw, records: MongoRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REFUSED_SECONDS", 0.0)
    for number in (1, 2):
        job = {"_id": bytes([number] * 16), "status": "pending", "request_hash": "h"}
        bare["job"].insert_one({**job, "created_at": wall_clock()})
    with pytest.raises(PortUnavailable, match=r"^several active jobs share a request hash: "):
        await records.jobs.latest_ended()
    bare["job"].update_one({"_id": bytes([1] * 16)}, {"$set": {"status": "failed"}})
    assert await records.jobs.latest_ended() is None
    with pytest.raises(DuplicateActiveJob):
        await records.jobs.insert(a_job(request_hash="h"))


async def test_a_refused_preparation_is_not_tried_again_at_once(
    bare: Raw, records: MongoRecords
) -> None:
    for number in (1, 2):
        job = {"_id": bytes([number] * 16), "status": "pending", "request_hash": "h"}
        bare["job"].insert_one({**job, "created_at": wall_clock()})
    with pytest.raises(PortUnavailable, match="several active jobs"):
        await records.jobs.latest_ended()
    with pytest.raises(PortUnavailable, match="could not be prepared"):
        await records.jobs.latest_ended()


# --- once a process ---------------------------------------------------------------------------


async def test_a_database_that_is_opened_again_is_not_looked_at_again(
    bare: Raw, asyncio_room: None, mongo_uri: str
) -> None:
    indexed = IndexedDatabases()
    for expected in (JOB_INDEXES | OWN_INDEXES, {}):
        async with open_mongo_records(
            mongo_uri, bare.name, allow_plaintext=True, prepare=indexed.prepare
        ) as records:
            await records.jobs.latest_ended()
            assert indexes_of(bare, "job") == expected
        bare["job"].drop_indexes()


async def test_a_database_that_was_dropped_and_made_anew_gets_its_indexes_again(
    bare: Raw, asyncio_room: None, mongo_uri: str
) -> None:
    """As a tenant's is that was purged, and is back while the process runs."""
    indexed = IndexedDatabases()
    for _ in range(2):
        async with open_mongo_records(
            mongo_uri, bare.name, allow_plaintext=True, prepare=indexed.prepare
        ) as records:
            await records.jobs.latest_ended()
            assert indexes_of(bare, "job") == JOB_INDEXES | OWN_INDEXES
            assert indexes_of(bare, "connection") == CONNECTION_INDEXES
        bare.client.drop_database(bare.name)
        bare["connection"].insert_one({"config_name": "made by whoever restores it"})


async def test_each_database_gets_its_own_and_a_failure_is_tried_again(
    bare: Raw, asyncio_room: None, mongo_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REFUSED_SECONDS", 0.0)
    indexed = IndexedDatabases()
    other = bare.client[f"{bare.name}_other"]
    for number in (1, 2):
        job = {"_id": bytes([number] * 16), "status": "pending", "request_hash": "h"}
        bare["job"].insert_one({**job, "created_at": wall_clock()})
    try:
        for database in (other, bare):
            async with open_mongo_records(
                mongo_uri, database.name, allow_plaintext=True, prepare=indexed.prepare
            ) as records:
                if database is bare:
                    with pytest.raises(PortUnavailable, match="several active jobs"):
                        await records.jobs.latest_ended()
                    bare["job"].delete_many({})
                await records.jobs.latest_ended()
                assert indexes_of(database, "job") == JOB_INDEXES | OWN_INDEXES
    finally:
        bare.client.drop_database(other.name)
