"""One attempt at a job over the Engine's memory harness and an object store in memory."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.adapters.memory.records import open_memory_records
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.crypto.opener import open_result
from fetcher.crypto.sealer import ResultSealer
from fetcher.domain.connections import Connection, Origin, SourceType
from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.domain.ids import ConnectionId, new_connection_id, new_job_id
from fetcher.domain.internal_sources import INTERNAL_SOURCES
from fetcher.domain.jobs import (
    Claimed,
    Filters,
    Job,
    JobOptions,
    JobStatus,
    Lease,
    MappedFields,
    TableProgress,
)
from fetcher.domain.terminal_event import JOB_CANCELLED, failed_mark
from fetcher_engine import (
    ConnectionDescriptor,
    Engine,
    SchemaSnapshot,
    SourceFailure,
    SourceNotes,
    Stage,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

NOW = datetime(2026, 3, 14, 9, 26, 54, 312000, tzinfo=UTC)
STORAGE_KEY, HMAC_KEY = bytes(range(32)), bytes(range(32, 64))
ROWS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "orders": [{"id": 9007199254740993, "note": "größe"}, {"id": 2, "note": None}]
}


class MemoryUpload:
    def __init__(self, store: "MemoryObjects", key: str) -> None:
        self._store = store
        self._key = key
        self._data = bytearray()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if self._store.down:
            raise PortUnavailable("bucket away")
        self._data += chunk

    async def complete(self) -> int:
        await trio.lowlevel.checkpoint()
        self._store.objects[self._key] = bytes(self._data)
        return len(self._data)


class MemoryObjects:
    """Only what an attempt uses; counts what was begun and left."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.down = False
        self.open_uploads = 0

    @asynccontextmanager
    async def upload(self, key: str) -> AsyncIterator[MemoryUpload]:
        self.open_uploads += 1
        try:
            yield MemoryUpload(self, key)
        finally:
            self.open_uploads -= 1

    async def delete(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.down:
            raise PortUnavailable("bucket away")
        self.objects.pop(key, None)


class Sources:
    """SourceEngines over one memory source."""

    def __init__(self, source: MemorySource) -> None:
        self.source = source
        self.built: list[ConnectionId] = []

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: MappedFields | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        store = MemoryConnectionStore()
        for connection in connections:
            self.built.append(connection.id)
            store.put(
                TenantContext.new("default"),
                ConnectionDescriptor(
                    config_name=connection.config_name,
                    type="POSTGRESQL",
                    host=connection.host,
                    port=connection.port,
                    database_name=connection.database_name,
                    username=connection.username,
                ),
            )
        registry = MemoryRegistry({"POSTGRESQL": MemoryConnectorFactory(self.source)})
        return Engine(registry, connection_store=store)


def a_connection(**changes: object) -> Connection:
    fields: dict[str, object] = {
        "id": new_connection_id(),
        "config_name": "sales_db",
        "type": SourceType.POSTGRESQL,
        "host": "db.test",
        "port": 5432,
        "database_name": "sales",
        "username": "reader",
        "password_encrypted": "sealed",
        "encryption_key_version": "1",
        "created_at": NOW,
        "updated_at": NOW,
        "product_name": "acme-reports",
    }
    return Connection(**{**fields, **changes})  # type: ignore[arg-type] # a test's builder


class Bench:
    def __init__(
        self,
        source: MemorySource | None = None,
        *,
        internal: Mapping[str, Connection] | None = None,
    ) -> None:
        schema = SchemaSnapshot(
            config_name="sales_db",
            tables=(TableSnapshot(name="orders", fields=("id", "note")),),
        )
        self.source = source or MemorySource(rows=ROWS, schema=schema)
        self.records = open_memory_records(lambda: NOW)
        self.objects = MemoryObjects()
        self.run_job = RunJob(
            JobRunParts(
                resolve=ResolveSources(
                    internal=EnvironmentSources(internal or {}), stored=self.records.connections
                ),
                leases=self.records.leases,
                engines=Sources(self.source),
                objects=self.objects,  # type: ignore[arg-type] # the parts that are used
                cleanup=self.records.cleanup,
                new_sealer=lambda: ResultSealer(storage_key=STORAGE_KEY, hmac_key=HMAC_KEY),
                key_version="7",
                key_prefix="results/",
                now=lambda: NOW,
            )
        )

    async def claimed(self, **changes: object) -> Claimed:
        fields: dict[str, object] = {
            "id": new_job_id(),
            "status": JobStatus.PENDING,
            "created_at": NOW,
            "mapped_fields": {"sales_db": {"public.orders": ("id", "note")}},
            "request_hash": "h",
            "metadata": {"source": "Acme-Reports"},
        }
        job = Job(**{**fields, **changes})  # type: ignore[arg-type] # a test's builder
        await self.records.jobs.insert(job)
        claim = await self.records.leases.claim(job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        return claim


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.records.connections.insert(a_connection())
    return bench


async def test_a_job_becomes_one_sealed_object_whose_facts_open_it(bench: Bench) -> None:
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.COMPLETED
    facts = outcome.result
    assert facts is not None
    assert facts.path == f"results/external-data/{claim.job.id}.json"
    assert (facts.row_count, facts.key_version) == (2, "7")
    with open_result(
        bench.objects.objects[facts.path],
        storage_key=STORAGE_KEY,
        hmac_key=HMAC_KEY,
        expected_hmac=facts.hmac,
        expected_size=facts.size_bytes,
    ) as opened:
        plain = opened.read()
    assert (
        plain
        == (
            '{"sales_db":{"orders":[{"id":9007199254740993,"note":"größe"},{"id":2,"note":null}]}}'
        ).encode()
    )
    event = json.loads(outcome.event.payload)
    assert event["result"]["path"] == facts.path
    assert event["metadata"] == {"source": "Acme-Reports"}
    assert event["completedAt"] == "2026-03-14T09:26:54.312Z"
    assert bench.objects.open_uploads == 0


async def test_what_the_source_told_of_its_reading_stays_with_the_result(bench: Bench) -> None:
    bench.source.notes = SourceNotes(has_snapshot=False, replaced_characters=3)
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.result is not None
    assert outcome.result.source_notes == {"sales_db": bench.source.notes}
    assert "replacedCharacters" not in outcome.event.payload, "the event's form is agreed"


async def test_what_was_read_of_each_table_stands_in_the_outcome(bench: Bench) -> None:
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    read = '{"id":9007199254740993,"note":"größe"},{"id":2,"note":null}'
    assert outcome.progress == {
        "sales_db": {"orders": TableProgress(rows=2, bytes=len(read.encode()))}
    }


async def test_a_later_attempt_writes_a_key_of_its_own(bench: Bench) -> None:
    claim = await bench.claimed()
    lease = replace(claim.lease, attempt=3)
    outcome = await bench.run_job.run(claim.job, lease)
    assert outcome.result is not None
    assert outcome.result.path == f"results/external-data/{claim.job.id}.3.json"


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"config_name": "other_db"}, "not_found", "no connection is configured for sales_db"),
        (
            {"product_name": "somebody-else"},
            "forbidden",
            "sales_db: the connection belongs to another product",
        ),
    ],
)
async def test_a_connection_that_is_gone_or_reassigned_fails_the_job(
    changes: dict[str, object], code: str, message: str
) -> None:
    bench = Bench()
    await bench.records.connections.insert(a_connection(**changes))
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.message) == (code, message)
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == message
    assert bench.objects.objects == {}


async def test_a_source_that_fails_names_source_stage_and_reason_and_leaves_no_object(
    bench: Bench,
) -> None:
    bench.source.stream_error = SourceFailure(
        Stage.ROWS, "invalid_text", table="orders", column="note"
    )
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.source, failure.stage, failure.reason) == (
        "unavailable",
        "sales_db",
        "rows",
        "invalid_text",
    )
    assert failure.message == "sales_db: rows failed: invalid text (orders.note)"
    assert bench.objects.objects == {}
    assert bench.objects.open_uploads == 0


async def test_a_missing_field_is_named(bench: Bench) -> None:
    claim = await bench.claimed(mapped_fields={"sales_db": {"orders": ("id", "totl")}})
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.failure is not None
    assert outcome.failure.code == "validation"
    assert outcome.failure.message.endswith("schema mismatch: missing fields orders.totl")


async def test_a_storage_failure_is_told_from_a_source_failure(bench: Bench) -> None:
    bench.objects.down = True
    claim = await bench.claimed()
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.failure is not None
    assert outcome.failure.code == "storage_unavailable"
    assert outcome.failure.message == "saving external data to storage failed"


async def test_a_job_that_was_asked_to_stop_is_never_made_visible(bench: Bench) -> None:
    claim = await bench.claimed()
    mark = failed_mark(claim.job, JOB_CANCELLED, at=NOW)
    await bench.records.jobs.request_cancel(claim.job.id, mark)
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.CANCELLED
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == "job cancelled"
    assert bench.objects.objects == {}


async def test_the_objects_of_lost_attempts_are_deleted_and_the_winners_kept(
    bench: Bench,
) -> None:
    claim = await bench.claimed()
    job = replace(claim.job, attempt=3)
    keys = [f"results/external-data/{job.id}{n}.json" for n in ("", ".2", ".3")]
    bench.objects.objects = dict.fromkeys(keys, b"x")
    await bench.run_job.tidy(job, keep_attempt=3)
    assert list(bench.objects.objects) == [keys[2]]
    await bench.run_job.tidy(job, keep_attempt=None)
    assert bench.objects.objects == {}


async def test_what_cannot_be_deleted_is_noted_for_the_reaper(bench: Bench) -> None:
    claim = await bench.claimed()
    bench.objects.down = True
    await bench.run_job.discard(claim.job, claim.lease)
    assert await bench.records.cleanup.find_due(limit=5) == [
        (claim.job.id, (f"results/external-data/{claim.job.id}.json",))
    ]


async def test_an_attempt_without_its_lease_makes_nothing_visible(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """A worker that was frozen wakes up after another one has claimed its job."""
    claim = await bench.claimed()
    assert await bench.records.leases.renew(claim.lease, lease_seconds=-1)
    other = await bench.records.leases.claim(claim.job.id, owner="w2", lease_seconds=60)
    assert isinstance(other, Claimed)
    with trio.move_on_after(10) as until_the_keeper_ends_it:
        await bench.run_job.run(claim.job, claim.lease)
    assert until_the_keeper_ends_it.cancelled_caught
    assert bench.objects.objects == {}
    assert bench.objects.open_uploads == 0


async def test_a_cancelled_attempt_leaves_no_upload(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    class Stalled(MemoryUpload):
        async def write(self, chunk: bytes | bytearray | memoryview) -> None:
            await trio.sleep_forever()

    class StalledObjects(MemoryObjects):
        @asynccontextmanager
        async def upload(self, key: str) -> AsyncIterator[MemoryUpload]:
            self.open_uploads += 1
            try:
                yield Stalled(self, key)
            finally:
                self.open_uploads -= 1

    objects = StalledObjects()
    parts = replace(bench.run_job._parts, objects=objects)  # type: ignore[arg-type] # as above
    claim = await bench.claimed()
    with trio.move_on_after(1) as scope:
        await RunJob(parts).run(claim.job, Lease(job_id=claim.job.id, token=b"", attempt=1))
    assert scope.cancelled_caught
    assert objects.open_uploads == 0


async def test_a_connection_record_that_cannot_be_read_fails_the_job_and_crashes_nobody(
    bench: Bench,
) -> None:
    async def corrupt(names: Sequence[str]) -> list[Connection]:
        await trio.lowlevel.checkpoint()
        raise RecordCorrupt("connection record: type")

    claim = await bench.claimed()
    bench.records.connections.find_by_config_names = corrupt  # type: ignore[method-assign] # a fault
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.FAILED
    assert outcome.failure is not None
    assert outcome.failure.code == "record_corrupt"


async def test_a_record_store_that_is_away_for_a_while_does_not_fail_the_job(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    claim = await bench.claimed()
    find = bench.records.connections.find_by_config_names

    async def away_at_first(names: Sequence[str]) -> list[Connection]:
        await trio.lowlevel.checkpoint()
        if trio.current_time() < 45:
            raise PortUnavailable("away")
        return await find(names)

    bench.records.connections.find_by_config_names = away_at_first  # type: ignore[method-assign] # a fault
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.COMPLETED
    assert 45 <= trio.current_time() <= 53


# --- internal data sources -------------------------------------------------------------------


def an_internal(name: str = "plugin_crm", **changes: object) -> Connection:
    return a_connection(
        config_name=name,
        product_name="",
        origin=Origin.INTERNAL,
        encryption_key_version="",
        **{"type": INTERNAL_SOURCES[name], **changes},
    )


async def test_internal_and_stored_sources_are_resolved_together() -> None:
    """Row of datasources 19.10: the name is internal, whatever is stored under it."""
    internal = an_internal()
    bench = Bench(internal={"plugin_crm": internal})
    stored = a_connection(config_name="ext-a")
    await bench.records.connections.insert(stored)
    await bench.records.connections.insert(
        a_connection(config_name="plugin_crm", product_name="somebody-else")
    )
    resolve = bench.run_job._parts.resolve
    assert await resolve(["plugin_crm", "ext-a"]) == [stored, internal]
    assert await resolve(["nobody", "plugin_crm"]) == [internal]
    claim = await bench.claimed(
        mapped_fields={"ext-a": {"orders": ("id",)}, "plugin_crm": {"orders": ("id",)}}
    )
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.status is JobStatus.COMPLETED, outcome.failure
    engines = bench.run_job._parts.engines
    assert isinstance(engines, Sources)
    assert engines.built == [stored.id, internal.id]


@pytest.mark.parametrize(
    ("name", "code"), [("plugin_crm", "FET-0054"), ("midaz_onboarding", "not_found")]
)
async def test_an_internal_source_without_its_variables_fails_the_job_by_name(
    name: str, code: str
) -> None:
    """No fall-back to a stored connection of the name, and nothing else is looked up."""
    bench = Bench()
    await bench.records.connections.insert(a_connection(config_name=name))

    async def never(names: Sequence[str]) -> list[Connection]:
        raise AssertionError(names)

    bench.records.connections.find_by_config_names = never  # type: ignore[method-assign] # a probe
    claim = await bench.claimed(
        mapped_fields={name: {"orders": ("id",)}, "sales_db": {"orders": ("id",)}}
    )
    outcome = await bench.run_job.run(claim.job, claim.lease)
    message = f"internal datasource '{name}' not configured via environment variables"
    assert outcome.failure is not None
    assert (outcome.failure.message, outcome.failure.code) == (message, code)
    assert outcome.failure.source == name
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == message


@pytest.mark.parametrize(
    ("source_type", "reason", "code"),
    [
        (SourceType.MONGODB, "driver_missing", "FET-0055"),
        (SourceType.MONGODB, "hash_key_missing", "FET-0057"),
        (SourceType.MONGODB, "encrypt_key_missing", "FET-0058"),
        (SourceType.MONGODB, "encrypt_key_unusable", "FET-0064"),
        (SourceType.MONGODB, "decryption_failed record_3", "FET-0065"),
        (SourceType.MONGODB, "forbidden", "unavailable"),
        (SourceType.POSTGRESQL, "driver_missing", "unavailable"),
    ],
)
async def test_plugin_crm_has_codes_of_its_own(
    source_type: SourceType, reason: str, code: str
) -> None:
    """Spec datasources 15.6. Of another type it is a source like any other."""
    bench = Bench(internal={"plugin_crm": an_internal(type=source_type)})
    bench.source.stream_error = SourceFailure(Stage.ROWS, reason, table="orders", column="note")
    claim = await bench.claimed(mapped_fields={"plugin_crm": {"orders": ("id", "note")}})
    outcome = await bench.run_job.run(claim.job, claim.lease)
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.reason) == (code, reason)
    words = reason.replace("_", " ")
    assert failure.message == f"plugin_crm: rows failed: {words} (orders.note)"
    error = json.loads(outcome.event.payload)["metadata"]["error"]
    assert (error["code"], error["message"]) == (code, failure.message)


async def test_a_logical_collection_that_nobody_has() -> None:
    bench = Bench(internal={"plugin_crm": an_internal()})
    claim = await bench.claimed(mapped_fields={"plugin_crm": {"holders": ("id",)}})
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.failure is not None
    assert outcome.failure.code == "FET-0059"
    assert outcome.failure.message == "plugin_crm: schema mismatch: missing tables holders"


async def test_another_sources_failure_has_no_code_of_plugin_crm() -> None:
    bench = Bench(internal={"plugin_crm": an_internal()})
    await bench.records.connections.insert(a_connection(config_name="a_db"))
    claim = await bench.claimed(
        mapped_fields={"a_db": {"nothing": ("id",)}, "plugin_crm": {"orders": ("id",)}}
    )
    outcome = await bench.run_job.run(claim.job, claim.lease)
    assert outcome.failure is not None
    assert (outcome.failure.source, outcome.failure.code) == ("a_db", "validation")
