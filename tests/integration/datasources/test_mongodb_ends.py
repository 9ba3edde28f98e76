"""MongoDB as a source: what is cut, cancelled, left unread, and read on in the same session."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from bson import Int64, ObjectId
from pymongo.errors import OperationFailure

from fetcher.datasources.connecting import TableStream
from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import connector, rows
from fetcher.datasources.mongodb.connect import MongoSession, open_session
from fetcher.datasources.mongodb.connector import CollectionReader
from fetcher.datasources.mongodb.factory import MongodbFactory
from fetcher.datasources.records import descriptor_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ExtractionRequest, StreamRequest
from tests.integration.datasources.harness import (
    TENANT,
    document,
    rows_of,
)
from tests.integration.datasources.mongo_sources import Source, to
from tests.integration.datasources.relay import relay

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

OID = ObjectId("64b7f0c2a1d3e4f5a6b7c8d9")
DAY = 86_400_000
START = 1_924_992_000_000  # 2031-01-01


# --- ends -----------------------------------------------------------------------------------


MANY = 5000


@pytest.fixture(scope="module")
def many(source: Source) -> Source:
    source["many"].insert_many([{"_id": n, "t": "x" * 900} for n in range(MANY)])
    return source


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
async def test_case_14_a_cut_connection_fails_the_job(
    many: Source, opened: RequestEngines, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, cut_after=1_000_000 + int(5000 * 930 * share)) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"many": ["*"]})
        assert between.reached.is_set()
    assert (caught.value.stage, caught.value.reason) == ("rows", "reset")


async def test_case_13_silence_in_mid_rows_ends_by_its_deadline(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    monkeypatch.setattr(connector, "NO_PROGRESS_SECONDS", 0.5)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, silent_after=2_500_000) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with trio.fail_after(8), pytest.raises(EngineError) as caught:
            await document(opened, connection, {"many": ["*"]})
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")


async def test_a_cancelled_job_ends_at_once_in_mid_read(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    host, port = many.client.address or ("", 0)
    async with relay(host, port, silent_after=2_500_000) as between:
        connection = to(many, host="127.0.0.1", port=between.port)
        with trio.fail_after(10), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def read(task: Callable[..., Any]) -> None:
                    await task(opened, connection, {"many": ["*"]})

                nursery.start_soon(read, document)
                await between.reached.wait()
                scope.cancel()
                cancelled_at = trio.current_time()
        assert trio.current_time() - cancelled_at < 4


async def test_what_is_left_unread_is_ended_on_the_server(
    many: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    settings = SourceSettings(decrypt=lambda stored, _: stored)
    scope = RequestScope(options=JobOptions(), requested=None)
    record = to(many)
    source = MongodbFactory(settings, SessionLimits(), scope).build(descriptor_of(record))
    await source.test_connection()
    stream = await source.open_stream(
        StreamRequest(config_name="src", tables={"many": ("t",)}, filters={})
    )
    assert isinstance(stream, TableStream)
    batch = await stream.next_batch()
    assert batch is not None
    assert isinstance(stream._reader, CollectionReader)
    assert stream._reader._rows is not None
    cursor = stream._reader._rows._cursor.cursor_id
    assert cursor
    await stream.aclose()
    await source.close()
    with pytest.raises(OperationFailure) as caught:
        many.command({"getMore": Int64(cursor), "collection": "many"})
    assert caught.value.code in (43, 13)  # gone, or another session's


async def test_a_collection_that_went_away_is_a_changed_schema(
    source: Source, opened: RequestEngines
) -> None:
    source["going"].insert_one({"_id": 1})
    engine = opened.engine_for([to(source)], JobOptions(), {"src": {"going": ("_id",)}})
    plan = await engine.plan_extraction(
        TENANT, ExtractionRequest(mapped_fields={"src": {"going": ["_id"]}})
    )
    source["going"].drop()
    with pytest.raises(EngineError) as caught:
        await engine.execute_extraction(plan)
    assert (caught.value.stage, caught.value.reason) == ("schema", "schema changed")


# --- sessions -------------------------------------------------------------------------------


async def test_the_next_job_reads_in_the_same_session(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[MongoSession] = []

    async def counted(*arguments: Any, **keywords: Any) -> MongoSession:
        made.append(await open_session(*arguments, **keywords))
        return made[-1]

    monkeypatch.setattr(connector, "open_session", counted)
    connection = to(many)
    for _ in range(2):
        assert len(await rows_of(opened, connection, "many", ["_id"])) == MANY
    assert len(made) == 1
    made[0].hello = {**made[0].hello, "isWritablePrimary": "no more"}
    assert len(await rows_of(opened, connection, "many", ["_id"])) == MANY
    assert len(made) == 2, "one whose server changed its role is replaced"
    made[1].client.close()
    assert len(await rows_of(opened, connection, "many", ["_id"])) == MANY
    assert len(made) == 3, "one that is broken is replaced"
