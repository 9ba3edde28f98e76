"""What tests of several sources share."""

import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest
from pymongo import common

from fetcher.datasources.engines import RequestEngines
from tests.integration.datasources.harness import engines
from tests.integration.datasources.mongo_sources import Source
from tests.servers.certificates import Authority, authority


@pytest.fixture
def brief_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """pymongo's threads look twice a second whether they are wanted; here every 20 ms, since each
    test waits for their end."""
    monkeypatch.setattr(common, "MIN_HEARTBEAT_INTERVAL", 0.02)


@pytest.fixture(scope="module")
def source(mongo_uri: str, mongo_database_of_module: str) -> Iterator[Source]:
    """The module's own database of the MongoDB test server."""
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as client:
        client.admin.command("ping")
        yield client[mongo_database_of_module]


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines() as started:
        yield started


@pytest.fixture(scope="module")
def signer() -> Authority:
    return authority()


@pytest.fixture(scope="module")
def tls(signer: Authority, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    identity = signer.certificate("localhost")
    folder: Path = tmp_path_factory.mktemp("tls")
    (folder / "cert").write_text(identity.cert, encoding="utf-8")
    (folder / "key").write_text(identity.key, encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context
