"""What goes wrong on the way to a source ends the job, with stage and reason (cases 13 and 14).

One suite for every database. A cut may come anywhere: the job fails, or nothing was missing.
"""

import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio

from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection, TlsSettings
from fetcher_engine import EngineError, ErrorCategory
from tests.integration.datasources.faulty_sources import (
    KINDS,
    FaultySource,
    Kind,
    Limit,
    mariadb_rows_in,
    mongodb_rows_in,
    postgresql_rows_in,
    through,
)
from tests.integration.datasources.harness import document, engines
from tests.integration.datasources.relay import relay
from tests.servers.addresses import SqlAddress

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

SOON = 0.4
STALLED_SECONDS = 3.0
"""More than a busy machine's server needs for its next batch."""
BOUND_SECONDS = 20
"""In which every test of a silent peer must have ended, however busy the machine is."""

FIELDS = {"t": ["id", "s"]}


@pytest.fixture(scope="module")
def postgresql_rows(postgres: SqlAddress) -> Iterator[SqlAddress]:
    with postgresql_rows_in(postgres) as address:
        yield address


@pytest.fixture(scope="module")
def mariadb_rows(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with mariadb_rows_in(mariadb) as address:
        yield address


@pytest.fixture(scope="module")
def mongodb_rows(mongo_uri: str, mongo_database_of_module: str) -> Connection:
    return mongodb_rows_in(mongo_uri, mongo_database_of_module)


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    found = KINDS[request.param]
    for module, name, value in found.prepare:
        monkeypatch.setattr(module, name, value)
    return found


def lower(monkeypatch: pytest.MonkeyPatch, limits: Sequence[Limit], seconds: float = SOON) -> None:
    for place, name in limits:
        if isinstance(place, dict):
            monkeypatch.setitem(place, name, seconds)
        else:
            monkeypatch.setattr(place, name, seconds)


@asynccontextmanager
async def opened(
    kind: Kind, request: pytest.FixtureRequest, **settings: Any
) -> AsyncIterator[tuple[FaultySource, RequestEngines]]:
    async with kind.open(request) as source, engines(include_views=True, **settings) as engine:
        yield source, engine


async def failure_of(
    engine: RequestEngines, connection: Connection, table: str = "t"
) -> tuple[str | None, str | None]:
    with trio.fail_after(BOUND_SECONDS), pytest.raises(EngineError) as caught:
        await document(engine, connection, {table: ["id", "s"]})
    assert caught.value.source == "src"
    assert caught.value.table in (table, None)
    is_late = caught.value.reason == "timeout"
    assert (caught.value.category is ErrorCategory.TIMEOUT) == is_late, "whatever the stage"
    return caught.value.stage, caught.value.reason


async def rows_lie_between(source: FaultySource, engine: RequestEngines) -> tuple[int, int, bytes]:
    """How many bytes come before the rows and with them, and the whole document."""
    connection = source.connection
    async with relay(connection.host, connection.port) as link:
        none = through(connection, link.port)
        await document(engine, none, FIELDS, filters={"t": {"id": {"lt": [-1]}}})
        before = link.forwarded
    async with relay(connection.host, connection.port) as link:
        whole = await document(engine, through(connection, link.port), FIELDS)
        return before, link.forwarded, whole


async def test_a_cut_amid_the_rows_is_told_as_such(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, request) as (source, engine):
        before, total, _ = await rows_lie_between(source, engine)
        for share in (0.25, 0.6):
            cut_after = int(before + (total - before) * share)
            connection = source.connection
            async with relay(connection.host, connection.port, cut_after=cut_after) as link:
                found = await failure_of(engine, through(connection, link.port))
                assert link.reached.is_set()
            assert found == ("rows", "reset")


async def test_a_cut_anywhere_is_never_a_shorter_success(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    """From the first byte to the last, where nothing but the end itself may be missing."""
    async with opened(kind, request) as (source, engine):
        before, total, whole = await rows_lie_between(source, engine)
        offsets = [0, 1, 5, before // 2, before - 40, before, before + 1, total - 2000, total - 1]
        outcomes = []
        for cut_after in offsets:
            connection = source.connection
            async with relay(connection.host, connection.port, cut_after=cut_after) as link:
                outcomes.append(await outcome_of(engine, through(connection, link.port)))
        *cut, last = outcomes
        assert all(isinstance(each, EngineError) for each in cut)
        errors = [each for each in outcomes if isinstance(each, EngineError)]
        assert all(error.stage and error.reason and error.source == "src" for error in errors)
        # what follows the server's word that this was all may be lost
        assert isinstance(last, EngineError) or last == whole


async def outcome_of(engine: RequestEngines, connection: Connection) -> bytes | EngineError:
    try:
        with trio.fail_after(BOUND_SECONDS):
            return await document(engine, connection, FIELDS)
    except EngineError as error:
        return error


async def test_silence_amid_the_rows_ends_by_the_limit_of_progress(
    kind: Kind, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(kind, request) as (source, engine):
        before, total, _ = await rows_lie_between(source, engine)
        lower(monkeypatch, kind.no_progress, STALLED_SECONDS)
        connection = source.connection
        middle = (before + total) // 2
        async with relay(connection.host, connection.port, silent_after=middle) as link:
            found = await failure_of(engine, through(connection, link.port))
        assert found == ("rows", "timeout")


async def test_silence_before_the_first_row_ends_by_its_limit(
    kind: Kind, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(kind, request) as (source, patient):
        before, _, _ = await rows_lie_between(source, patient)
        lower(monkeypatch, (*kind.no_progress, *kind.before_rows), STALLED_SECONDS)
        connection = source.connection
        async with (
            engines(query_timeout_seconds=STALLED_SECONDS) as engine,
            relay(connection.host, connection.port, silent_after=before - 60) as link,
        ):
            stage, reason = await failure_of(engine, through(connection, link.port))
        assert reason == "timeout"
        assert stage in ("schema", "query", "rows")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_server_that_accepts_and_says_nothing_ends_at_its_stage(
    kind: Kind,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    encrypted: bool,
) -> None:
    lower(monkeypatch, kind.connecting)
    async with opened(kind, request) as (source, engine):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            connection = through(source.connection, silent.getsockname()[1])
            if encrypted:
                connection = replace(connection, tls=TlsSettings(mode=kind.tls_mode))
            found = await failure_of(engine, connection)
    assert found == ("tls" if encrypted else kind.silent_login, "timeout")


async def test_a_server_that_does_not_even_accept_ends_in_tcp(
    kind: Kind, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, kind.connecting)
    monkeypatch.setattr("fetcher.datasources.dialing.ADDRESS_SECONDS", SOON)
    async with opened(kind, request) as (source, engine):
        with full_queue() as port:
            assert await failure_of(engine, through(source.connection, port)) == ("tcp", "timeout")


@contextmanager
def full_queue() -> Iterator[int]:
    """A port whose queue of connections is full: the kernel drops whoever else knocks."""
    waiting = []
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        try:
            yield full.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


async def test_a_server_that_gives_up_amid_the_rows_fails_the_job(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, request) as (source, engine):
        assert source.fails_amid_rows
        for table, expected in source.fails_amid_rows.items():
            assert await failure_of(engine, source.failing or source.connection, table) in expected


async def test_a_statement_whose_time_is_over_amid_the_rows_fails_the_job(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, request, query_timeout_seconds=0.5) as (source, engine):
        assert source.too_slow
        for table, expected in source.too_slow.items():
            assert await failure_of(engine, source.failing or source.connection, table) in expected
