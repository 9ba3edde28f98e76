"""What is sent to a MongoDB stands in the page's table of commands and rights, and nothing else."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pymongo
import pytest
from pymongo.monitoring import CommandListener, CommandStartedEvent

from fetcher.datasources.mongodb import rows
from fetcher.datasources.mongodb.factory import MongodbFactory
from fetcher.datasources.records import descriptor_of
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.domain.connections import SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import StreamRequest
from tests.integration.datasources.harness import a_connection, document, engines

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

PAGE = Path(__file__).parents[3] / "docs" / "sources" / "mongodb.md"


class Commands(CommandListener):
    """Names of commands, with the stages of pipelines."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.databases: set[str] = set()

    def started(self, event: CommandStartedEvent) -> None:
        self.names.add(event.command_name)
        stages = event.command.get("pipeline", [])
        self.names |= {name for stage in stages for name in stage}
        if event.command_name not in ("hello", "ping", "killSessions", "endSessions"):
            self.databases.add(event.database_name)
        if event.command_name == "listCollections":
            assert event.command["authorizedCollections"] is True
            assert event.command["nameOnly"] is True

    def succeeded(self, event: object) -> None: ...

    def failed(self, event: object) -> None: ...


@pytest.fixture
def shop(
    mongo_uri: str, mongo_database: Callable[[], str]
) -> Iterator["pymongo.database.Database[Any]"]:
    with pymongo.MongoClient[Any](mongo_uri, serverMonitoringMode="poll") as opened:
        database = opened[mongo_database()]
        database.orders.insert_many([{"n": number} for number in range(1_200)])
        database.orders.insert_one({"n": 1_200, "rare": "x"})
        database.customers.insert_many([{"name": "x"}])
        yield database


@pytest.fixture
def sent() -> Iterator[Commands]:
    """By the clients that sources make meanwhile."""
    commands = Commands()
    make = pymongo.MongoClient

    def make_listened(*place: Any, event_listeners: Sequence[Any] = (), **options: Any) -> Any:
        return make(*place, event_listeners=[*event_listeners, commands], **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pymongo, "MongoClient", make_listened)
        yield commands


def documented() -> set[str]:
    page = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \| (.*?) \|", page, re.MULTILINE)
    return set(re.findall(r"`([$a-zA-Z]+)`", " ".join(map(" ".join, cells))))


async def test_every_command_that_is_sent_is_documented(
    shop: "pymongo.database.Database[Any]", sent: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 500)
    host, port = shop.client.address or ("", 0)
    connection = a_connection(
        source_type=SourceType.MONGODB, host=host, port=port, database=shop.name
    )
    async with engines() as opened:
        whole = {"orders": ["n", "rare"], "customers": ["*"]}
        await document(opened, connection, whole, filters={"orders": {"n": {"gt": [3]}}})
    settings = SourceSettings(decrypt=lambda stored, _: stored)
    scope = RequestScope(options=JobOptions(), requested=None)
    source = MongodbFactory(settings, SessionLimits(), scope).build(descriptor_of(connection))
    await source.test_connection()
    await source.discover_schema()
    request = StreamRequest(config_name="src", tables={"orders": ("n",)}, filters={})
    stream = await source.open_stream(request)
    await stream.next_batch()
    await stream.aclose()
    await source.close()
    assert {"listCollections", "count", "aggregate", "$sample", "find", "getMore"} <= sent.names
    assert sent.names <= documented()
    assert sent.databases == {shop.name}
