"""MongoDB that fails in mid work: silence, cuts, killed cursors, cancelled jobs, and what is told.

By a server of ours that fails on purpose, and by a relay before a MongoDB-compatible one.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pymongo
import pytest
import trio
from bson import Int64
from pymongo.database import Database
from pymongo.errors import OperationFailure

from fetcher.datasources import connecting
from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import connector, rows
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import TENANT, a_connection, document, engines
from tests.integration.datasources.relay import relay
from tests.servers.fake_mongo import Answer, FakeMongo, HangUp, batch, failed, fake_mongo

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

CANARY = "canary-5e1f"
CURSOR = 77

Source = Database[dict[str, Any]]


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines() as started:
        yield started


def a_source(port: int, **changes: Any) -> Connection:
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": port, "database": "db", **changes}
    return a_connection(source_type=SourceType.MONGODB, **settings)


def served(get_more: Answer, **changed: Answer) -> dict[str, Answer]:
    """A collection ``t`` whose first batch comes."""

    def find(command: dict[str, Any]) -> Mapping[str, Any]:
        if command.get("limit"):  # a sample
            return batch({"_id": 1, "n": 1})
        return batch({"_id": 1, "n": 1}, {"_id": 2, "n": 2}, cursor=CURSOR)

    return {
        "listCollections": lambda _: batch({"name": "t", "type": "collection"}),
        "count": lambda _: {"n": 2, "ok": 1.0},
        "find": find,
        "getMore": get_more,
        **changed,
    }


def silent(_: dict[str, Any]) -> None:
    return None


def hung_up(_: dict[str, Any]) -> Mapping[str, Any]:
    raise HangUp


def refused(code: int) -> Answer:
    return lambda _: failed(code, f"{CANARY} at host {CANARY}")


async def outcome(opened: RequestEngines, connection: Connection) -> tuple[str, str]:
    """Stage and reason of the failure; neither the error nor its parents tell more."""
    with trio.fail_after(8), pytest.raises(EngineError) as caught:
        await document(opened, connection, {"t": ["n"]})
    error = caught.value
    told = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
    assert CANARY not in told
    return str(error.stage), str(error.reason)


async def test_what_the_fake_serves_is_read(opened: RequestEngines) -> None:
    last: Answer = lambda _: batch({"_id": 3, "n": 3}, first=False)  # noqa: E731
    async with fake_mongo(**served(last)) as server:
        data = await document(opened, a_source(server.port), {"t": ["n"]})
    assert data == b'{"src":{"t":[{"_id":1,"n":1},{"_id":2,"n":2},{"_id":3,"n":3}]}}'


MID_READ = [
    (refused(43), ("rows", "reset")),  # CursorNotFound: killed, or timed out
    (refused(237), ("rows", "reset")),  # CursorKilled
    (refused(50), ("rows", "timeout")),  # maxTimeMS
    (refused(262), ("rows", "timeout")),
    (refused(11601), ("rows", "interrupted")),  # killOp
    (refused(11600), ("rows", "shut_down")),
    (refused(91), ("rows", "shut_down")),
    (refused(13436), ("rows", "not_primary")),
    (refused(10107), ("rows", "not_primary")),
    (refused(175), ("schema", "schema changed")),
    (refused(13), ("rows", "forbidden")),
    (refused(4711), ("rows", "unknown")),
    (hung_up, ("rows", "reset")),
    (silent, ("rows", "timeout")),
    (lambda _: {"ok": 1.0}, ("rows", "protocol")),
    (lambda _: {"ok": 1.0, "cursor": {"id": 0, "nextBatch": "none"}}, ("rows", "protocol")),
]


@pytest.mark.parametrize(("get_more", "expected"), MID_READ)
async def test_a_read_that_ends_in_the_middle_is_no_short_success(
    opened: RequestEngines,
    monkeypatch: pytest.MonkeyPatch,
    get_more: Answer,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setattr(connector, "NO_PROGRESS_SECONDS", 0.4)
    async with fake_mongo(**served(get_more)) as server:
        assert await outcome(opened, a_source(server.port)) == expected


FIRST = [
    ("listCollections", silent, ("schema", "timeout")),
    ("listCollections", hung_up, ("schema", "reset")),
    ("listCollections", refused(13), ("schema", "forbidden")),
    ("count", silent, ("schema", "timeout")),
    ("find", silent, ("schema", "timeout")),
    ("find", hung_up, ("schema", "reset")),
]


@pytest.mark.parametrize(("command", "answer", "expected"), FIRST)
async def test_case_13_before_the_first_row(
    opened: RequestEngines,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    answer: Answer,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setattr(connecting, "DISCOVERY_SECONDS", 0.4)
    async with fake_mongo(**served(silent, **{command: answer})) as server:
        assert await outcome(opened, a_source(server.port)) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (silent, ("query", "timeout")),
        (hung_up, ("query", "reset")),
        (refused(50), ("query", "timeout")),
        (refused(13), ("query", "forbidden")),
    ],
)
async def test_case_13_in_the_first_batch(
    opened: RequestEngines,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setattr(connector, "NO_PROGRESS_SECONDS", 0.4)
    answers = served(silent)
    sample = answers["find"]
    answers["find"] = lambda command: sample(command) if "limit" in command else answer(command)
    async with fake_mongo(**answers) as server:
        assert await outcome(opened, a_source(server.port)) == expected


async def test_case_12_a_cancelled_job_stops_its_cursor(opened: RequestEngines) -> None:
    """While the server works on the next batch: the cursor, and the session where there is one."""
    asked = trio.Event()

    def slow(_: dict[str, Any]) -> None:
        asked.set()

    async with fake_mongo(**served(slow)) as server:
        server.hello["logicalSessionTimeoutMinutes"] = 30
        with trio.fail_after(6):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(document, opened, a_source(server.port), {"t": ["n"]})
                await asked.wait()
                nursery.cancel_scope.cancel()
            killed = [each for each in server.commands if "killCursors" in each]
            assert [each["cursors"] for each in killed] == [[CURSOR]]
            assert "killSessions" in server.names()


# --- a server that stores ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(mongo_uri: str, mongo_database_of_module: str) -> Iterator[Source]:
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as client:
        source = client[mongo_database_of_module]
        source["t"].insert_many([{"_id": n, "n": "x" * 400} for n in range(2000)])
        yield source


def place_of(source: Source) -> tuple[str, int]:
    return source.client.address or ("", 0)


@pytest.mark.parametrize("cut_after", [1, 60, 250, 600])
async def test_case_14_a_cut_before_the_rows(
    many: Source, opened: RequestEngines, cut_after: int
) -> None:
    async with relay(*place_of(many), cut_after=cut_after) as between:
        source = a_source(between.port, database=many.name)
        stage, reason = await outcome(opened, source)
        assert between.reached.is_set()
    assert (stage, reason) in {("auth", "reset"), ("schema", "reset")}


async def test_a_cursor_that_somebody_kills_fails_the_job(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the server: by whoever may kill the cursors of others."""
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 200)
    started = rows.CollectionRows.fetch

    def start_and_lose(self: rows.CollectionRows) -> None:
        started(self)
        many.command({"killCursors": "t", "cursors": [Int64(self._cursor.cursor_id or 0)]})

    monkeypatch.setattr(rows.CollectionRows, "fetch", start_and_lose)
    host, port = place_of(many)
    source = a_source(port, host=host, database=many.name)
    assert await outcome(opened, source) == ("rows", "reset")


async def test_case_12_the_cursor_of_a_cancelled_job_is_gone_on_the_server(
    many: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 200)
    cursors: list[Int64] = []
    scope = trio.CancelScope()
    started = rows.CollectionRows.fetch

    def start_and_cancel(self: rows.CollectionRows) -> None:
        started(self)
        cursors.append(Int64(self._cursor.cursor_id or 0))
        trio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(rows.CollectionRows, "fetch", start_and_cancel)
    host, port = place_of(many)
    with trio.fail_after(6), scope:
        await document(opened, a_source(port, host=host, database=many.name), {"t": ["n"]})
    assert scope.cancelled_caught
    assert cursors[0]
    with pytest.raises(OperationFailure) as gone:
        many.command({"getMore": cursors[0], "collection": "t"})
    assert gone.value.code == 43


# --- case 21 ----------------------------------------------------------------------------------


async def test_case_21_a_secret_is_in_no_failure_and_no_log(
    opened: RequestEngines, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every field holds one; every way to fail is taken."""
    caplog.set_level(0)
    secret = {"user": f"u-{CANARY}", "password": f"p-{CANARY}", "database": f"d-{CANARY}"}
    tls = TlsSettings(mode="true", ca=CANARY, cert=CANARY, key=CANARY)
    async with fake_mongo(**served(refused(8000), ping=refused(18))) as server:
        for connection in (
            a_source(server.port, **secret),
            a_source(server.port, tls=tls, **secret),
            a_source(server.port, tls=TlsSettings(mode=CANARY), **secret),
            a_source(1, **secret),
            a_source(server.port, host=f"{CANARY}.invalid", **secret),
            a_source(server.port, **(secret | {"database": f"{CANARY}/"})),
            a_source(server.port),
        ):
            with trio.fail_after(12):
                await outcome(opened, connection)
        await _schema_fails(opened, server)
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


async def _schema_fails(opened: RequestEngines, server: FakeMongo) -> None:
    server.answers["listCollections"] = refused(13)
    engine = opened.engine_for([a_source(server.port)], JobOptions())
    with pytest.raises(EngineError) as caught:
        await engine.discover_schema(TENANT, "src")
    assert CANARY not in repr((caught.value, vars(caught.value), caught.value.__context__))
