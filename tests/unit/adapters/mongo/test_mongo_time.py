"""The server is asked for its time before an operation: how often, where it does not tell it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect, NotPrimaryError, ServerSelectionTimeoutError

from fetcher.adapters.mongo.failures import NeverSent
from fetcher.adapters.mongo.server import Database, MongoServer, Turn
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Asked:
    """A database that fails when it is asked, as often as it has failures, and then answers."""

    codec_options = None

    def __init__(self, failures: Sequence[Exception]) -> None:
        self.failures = list(failures)
        self.count = 0

    async def command(self, name: str, **_: object) -> dict[str, Any]:
        assert name == "hello"
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"localTime": NOW}


async def told_by(database: Asked) -> datetime | PortUnavailable:
    async def prepare(_: Database) -> None:
        pass

    async def now(turn: Turn) -> datetime:
        return turn.now

    client = cast("Any", None)
    server = MongoServer(client, cast("Database", database), prepare=prepare)
    async with open_asyncio(pytest.fail):
        try:
            return await server.run(now)
        except PortUnavailable as failure:
            return failure


@pytest.mark.parametrize("failure", [AutoReconnect("closed"), NotPrimaryError("stepped down")])
async def test_a_connection_that_had_been_closed_is_asked_for_by_another(
    failure: Exception,
) -> None:
    database = Asked([failure])
    assert isinstance(await told_by(database), datetime)
    assert database.count == 2


async def test_who_found_no_server_does_not_wait_for_one_twice() -> None:
    database = Asked([ServerSelectionTimeoutError("none")])
    assert isinstance(await told_by(database), NeverSent)
    assert database.count == 1


async def test_two_connections_that_had_been_closed_are_a_failure() -> None:
    database = Asked([AutoReconnect("closed"), AutoReconnect("closed")])
    assert isinstance(await told_by(database), PortUnavailable)
    assert database.count == 2
