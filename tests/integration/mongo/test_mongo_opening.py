"""What the record store asks of an address before it opens, and its entry in readiness."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pymongo
import pytest
import structlog
import trio
from pydantic import SecretStr

from fetcher.adapters.mongo import open_mongo_records, server
from fetcher.bootstrap import open_record_store
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.ports import ProbeResult, ProbeStatus
from fetcher.settings import Settings
from tests.integration.datasources.mongo_server import running_server
from tests.integration.mongo.builders import a_connection
from tests.servers.certificates import Authority

pytestmark = pytest.mark.integration


async def test_plain_text_is_refused_unless_allowed(asyncio_room: None, mongo_uri: str) -> None:
    with pytest.raises(StartRefused) as caught:
        async with open_mongo_records(mongo_uri, "any"):
            pass
    assert caught.value.problems == (
        "mongo connect: TLS required (set ALLOW_INSECURE_TLS=true to bypass)",
    )


async def test_allowed_plain_text_is_warned_of(asyncio_room: None, mongo_uri: str) -> None:
    with structlog.testing.capture_logs() as logs:
        async with open_mongo_records(mongo_uri, "any", allow_plaintext=True):
            pass
    assert logs == [
        {
            "event": "plaintext_connection",
            "feature": "mongo_tls",
            "env_var": "ALLOW_INSECURE_TLS",
            "log_level": "warning",
        }
    ]


async def test_trust_roots_are_tls_and_the_only_ones(asyncio_room: None, tmp_path: Path) -> None:
    known, other = Authority(), Authority()
    found: dict[str, ProbeResult] = {}
    with running_server(tmp_path / "mongo", identity=known.certificate("127.0.0.1")) as port:
        for ca in (known.ca, other.ca):
            address = f"mongodb://127.0.0.1:{port}"
            async with open_mongo_records(address, "any", ca_pem=ca) as records:
                found[ca] = await records.probe.check()
    assert (found[known.ca].status, found[known.ca].tls) == (ProbeStatus.UP, True)
    assert found[other.ca].status is ProbeStatus.DOWN


@pytest.mark.parametrize(
    "address",
    [
        "://s3cr3t-canary",
        "s3cr3t-canary",
        "http://kim:s3cr3t-canary@h1/",
        "mongodb://kim:s3cr3t-canary@h1:99999/",
        "mongodb://kim:s3cr3t-canary@h1/?tls=perhaps",
        "mongodb://kim:s3cr3t-canary@h1/?retrywrites=maybe",
        "mongodb://kim:s3cr3t-canary@h1/?nosuchoption=1",
        "mongodb://kim:s3cr3t-canary/@h1/",
        "mongodb://",
        "mongodb+srv://kim:s3cr3t-canary@h1,h2/",
    ],
)
async def test_an_address_that_cannot_work_stops_the_start_without_its_text(
    asyncio_room: None, address: str
) -> None:
    with pytest.raises(StartRefused) as caught:
        async with open_mongo_records(address, "any", allow_plaintext=True):
            pass
    assert caught.value.problems == (
        "MONGO_URI: the driver does not accept the address or its parameters",
    )
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_the_probe_pings(asyncio_room: None, mongo_uri: str) -> None:
    async with open_mongo_records(mongo_uri, "any", allow_plaintext=True) as records:
        assert (records.probe.name, records.probe.timeout_seconds) == ("mongodb", 2.0)
        result = await records.probe.check()
    assert (result.status, result.error, result.tls) == (ProbeStatus.UP, None, False)


async def test_the_probe_needs_no_index(asyncio_room: None, mongo_uri: str) -> None:
    name = f"fetcher_t_{secrets.token_hex(6)}"
    async with open_mongo_records(mongo_uri, name, allow_plaintext=True) as records:
        with structlog.testing.capture_logs() as logs:
            await records.probe.check()
    assert logs == []


async def test_a_refusal_by_the_server_is_shown_without_credentials(
    asyncio_room: None, mongo_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "OPERATION_SECONDS", 0.5)
    with_user = mongo_uri.replace("mongodb://", "mongodb://kim:s3cr3t-canary@", 1)
    async with open_mongo_records(with_user, "any", allow_plaintext=True) as records:
        result = await records.probe.check()
        with pytest.raises(PortUnavailable) as caught:
            await records.jobs.latest_ended()
    assert result.status is ProbeStatus.DOWN
    assert (result.error or "").lower().rstrip(".") == "authentication failed"
    assert "canary" not in f"{result!r} {caught.value!r}"


async def test_a_cancelled_probe_is_cancelled(asyncio_room: None, mongo_uri: str) -> None:
    async with open_mongo_records(mongo_uri, "any", allow_plaintext=True) as records:
        with trio.CancelScope() as scope:
            scope.cancel()
            await records.probe.check()
        assert scope.cancelled_caught


async def test_the_databases_name_is_put_in_lower_case(
    asyncio_room: None, mongo_uri: str, mongo_database: Callable[[], str]
) -> None:
    name = mongo_database()
    settings = Settings(
        mongo_uri=SecretStr(mongo_uri), mongo_name=name.upper(), allow_insecure_tls=True
    )
    connection = a_connection()
    async with open_record_store(settings, None, is_owner=False) as opened:
        await opened.records.connections.insert(connection)
    with pymongo.MongoClient[dict[str, object]](
        mongo_uri, serverSelectionTimeoutMS=10_000
    ) as client:
        found = client[name]["connection"].find_one({"config_name": connection.config_name})
    assert found is not None
