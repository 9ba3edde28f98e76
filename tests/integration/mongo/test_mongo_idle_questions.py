"""What is asked of MongoDB for a tenant without jobs: there are hundreds of such tenants."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo.database import Database
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

from fetcher.adapters.mongo import MongoRecords, client, server, shared_clients
from fetcher.adapters.mongo.clock import ServerClock
from fetcher.adapters.mongo.pool_count import PoolCount
from fetcher.adapters.mongo.shared_clients import open_shared_clients
from fetcher.domain.tenants import MongoPlace

pytestmark = pytest.mark.integration


class Asked(PoolCount, CommandListener):
    """Notes the names of the commands that clients send."""

    commands: list[str]

    def started(self, event: CommandStartedEvent) -> None:
        self.commands.append(event.command_name)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Only what is asked counts."""

    def failed(self, event: CommandFailedEvent) -> None:
        """As above."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    commands: list[str] = []
    Asked.commands = commands
    monkeypatch.setattr(client, "PoolCount", Asked)
    return commands


def sweeps(records: MongoRecords) -> dict[str, Callable[[], Awaitable[Any]]]:
    assert records.reference_events is not None
    reference = records.reference_events
    return {
        "dispatcher": lambda: records.dispatch.claim_due(limit=50, lease_seconds=30),
        "reaper": lambda: records.expired.find_expired(limit=50),
        "tidying": lambda: records.cleanup.find_due(limit=50),
        "repairer": lambda: records.events.claim_due(limit=25, lease_seconds=30),
        "reference": lambda: reference.claim_due(limit=25),
        "events": records.events.backlog,
        "jobs": records.dispatch.active_jobs,
        "breakers": records.breakers.count_open,
    }


async def test_a_sweep_that_finds_nothing_is_one_question(
    asked: list[str], raw: Database[dict[str, Any]], records: MongoRecords
) -> None:
    await records.expired.find_expired(limit=50)
    questions = {}
    for name, sweep in sweeps(records).items():
        asked.clear()
        await sweep()
        questions[name] = len(asked)
    assert questions == dict.fromkeys(questions, 1) | {"jobs": 2}
    assert raw["job"].count_documents({}) == 0


async def test_tenants_of_one_client_ask_the_server_for_its_time_together(
    asyncio_room: None,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks: list[ServerClock] = []

    class Noted(ServerClock):
        def asking(self) -> float:
            clocks.append(self)
            return super().asking()

    monkeypatch.setattr(shared_clients, "ServerClock", Noted)
    monkeypatch.setattr(server, "ServerClock", Noted)
    parts = urlsplit(mongo_uri)
    async with open_shared_clients(allow_plaintext=True, idle_seconds=300) as clients:
        for _ in range(2):
            host, port = parts.hostname or "", parts.port
            place = MongoPlace(database=mongo_database(), host=host, port=port)
            async with clients.records(place) as records:
                await records.expired.find_expired(limit=50)
    assert len(set(clocks)) == 1
