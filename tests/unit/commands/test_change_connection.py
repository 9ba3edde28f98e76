"""A caller that goes away while a connection is changed or deleted (spec rest-api 7.6, 8.6)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.commands.connection_input import ConnectionChange
from fetcher.commands.delete_connection import DELETE_SECONDS, DeleteConnection
from fetcher.commands.patch_connection import CHANGE_SECONDS, PatchConnection
from fetcher.domain.connections import Connection, UpdateAnswer
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import ConnectionId
from fetcher.ports import ConnectionRecords, JobRecords
from fetcher_engine import TenantContext
from tests.unit.api.harness import START, ReversingCipher, a_connection

TENANT = TenantContext.new("default")
BEFORE = a_connection()


class SlowConnections:
    """One connection; its writes take a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.writing = trio.Event()

    async def get(self, connection_id: ConnectionId) -> Connection:
        return replace(BEFORE, id=connection_id)

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        await self._write()
        return UpdateAnswer.WRITTEN

    async def delete(self, connection_id: ConnectionId, *, at: datetime) -> bool:
        await self._write()
        return True

    async def _write(self) -> None:
        self.writing.set()
        await trio.sleep(self.seconds)


class NoJobs:
    async def is_in_use(self, config_name: str) -> bool:
        await trio.lowlevel.checkpoint()
        return False


class Aftermath:
    """Keeps what was done after the write."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def forget(self, tenant: TenantContext, config_name: str) -> None:
        await trio.lowlevel.checkpoint()
        self.done.append(f"forgot {config_name}")

    async def recover(self, connection_id: ConnectionId, config_name: str) -> None:
        await trio.lowlevel.checkpoint()
        self.done.append(f"recovered {config_name}")


def a_patch(connections: SlowConnections, aftermath: Aftermath) -> Callable[[], Awaitable[object]]:
    patch = PatchConnection(
        connections=cast("ConnectionRecords", connections),
        jobs=cast("JobRecords", NoJobs()),
        cipher=ReversingCipher(),
        forget_schemas=aftermath.forget,
        recover=aftermath.recover,
        now=lambda: START,
        sqlite_allowed=False,
    )
    return lambda: patch(BEFORE.id, ConnectionChange(config_name="sales_2"), tenant=TENANT)


def a_deletion(
    connections: SlowConnections, aftermath: Aftermath
) -> Callable[[], Awaitable[object]]:
    delete = DeleteConnection(
        connections=cast("ConnectionRecords", connections),
        jobs=cast("JobRecords", NoJobs()),
        forget_schemas=aftermath.forget,
        recover=aftermath.recover,
        now=lambda: START,
    )
    return lambda: delete(BEFORE.id, tenant=TENANT)


@pytest.mark.parametrize(
    ("operation", "done"),
    [
        (a_patch, ["forgot sales_2", "forgot sales_db", "recovered sales_db"]),
        (a_deletion, ["forgot sales_db", "recovered sales_db"]),
    ],
)
async def test_what_was_remembered_goes_though_the_caller_goes_away_during_the_write(
    operation: Callable[[SlowConnections, Aftermath], Callable[[], Awaitable[object]]],
    done: list[str],
    autojump_clock: MockClock,
) -> None:
    connections, aftermath = SlowConnections(5), Aftermath()
    async with trio.open_nursery() as nursery:

        async def request() -> None:
            await operation(connections, aftermath)()

        nursery.start_soon(request)
        await connections.writing.wait()
        nursery.cancel_scope.cancel()
    assert aftermath.done == done


@pytest.mark.parametrize(
    ("operation", "seconds"), [(a_patch, CHANGE_SECONDS), (a_deletion, DELETE_SECONDS)]
)
async def test_store_that_never_answers_is_given_up(
    operation: Callable[[SlowConnections, Aftermath], Callable[[], Awaitable[object]]],
    seconds: float,
    autojump_clock: MockClock,
) -> None:
    aftermath = Aftermath()
    began = trio.current_time()
    with pytest.raises(PortUnavailable):
        await operation(SlowConnections(10_000), aftermath)()
    assert trio.current_time() - began == pytest.approx(seconds)
    assert aftermath.done == []
