"""MongoDB away, coming back, and falling silent in the middle of an operation."""

import socket
from datetime import timedelta
from typing import Any

import pytest
import trio
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records
from fetcher.adapters.mongo.failures import NeverSent
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import ProbeStatus
from tests.integration.mongo.builders import a_job
from tests.integration.mongo.lossy_proxy import LossyProxy, address_of, lossy_proxy

Raw = Database[dict[str, Any]]

LATER = timedelta(seconds=1)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("sockets_of_cancelled_connects_are_collected"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# --- away -------------------------------------------------------------------------------------


async def test_a_server_that_is_away_at_start_is_found_when_it_comes(
    short_deadlines: None, asyncio_room: None, raw: Raw, mongo_uri: str
) -> None:
    port = free_port()
    async with open_mongo_records(address_of(port), raw.name, allow_plaintext=True) as records:
        with pytest.raises(PortUnavailable) as caught:
            await records.jobs.insert(a_job())
        assert isinstance(caught.value, NeverSent)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        down = await records.probe.check()
        assert (down.status, down.error, down.tls) == (ProbeStatus.DOWN, "timeout", False)
        async with lossy_proxy(mongo_uri, port=port):
            job = a_job()
            with trio.fail_after(10):
                while True:
                    try:
                        await records.jobs.insert(job)
                        break
                    except PortUnavailable:
                        await trio.sleep(0.05)
            assert await records.jobs.get(job.id) == job
            assert (await records.probe.check()).status is ProbeStatus.UP
    assert "uniq_job_hash_active" in raw["job"].index_information()


async def test_everybody_who_waits_for_an_absent_server_fails_in_time(
    short_deadlines: None, asyncio_room: None, raw: Raw
) -> None:
    failures: list[float] = []

    async def ask(records: MongoRecords) -> None:
        started_at = trio.current_time()
        with pytest.raises(PortUnavailable):
            await records.jobs.latest_ended()
        failures.append(trio.current_time() - started_at)

    address = address_of(free_port())
    async with (
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
        trio.open_nursery() as nursery,
    ):
        for _ in range(20):
            nursery.start_soon(ask, records)
    assert len(failures) == 20
    assert max(failures) < 4


@pytest.mark.parametrize("user", ["kim:s3cr3t-canary@", ""])
async def test_no_error_shows_the_address(
    short_deadlines: None, asyncio_room: None, raw: Raw, user: str
) -> None:
    address = f"mongodb://{user}127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=100"
    async with open_mongo_records(address, raw.name, allow_plaintext=True) as records:
        with pytest.raises(PortUnavailable) as caught:
            await records.jobs.latest_ended()
        shown = f"{caught.value!r} {caught.value.__context__!r} {await records.probe.check()!r}"
    assert "canary" not in shown


async def test_the_probe_answers_in_time_when_the_server_hangs(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    assert (await records.probe.check()).status is ProbeStatus.UP
    proxy.hold()
    started_at = trio.current_time()
    result = await records.probe.check()
    assert 1.5 < trio.current_time() - started_at < 2.5
    assert (result.status, result.error) == (ProbeStatus.DOWN, "timeout")
    assert result.latency_ms >= 1500
    proxy.let_go()


async def test_an_operation_has_a_deadline_when_the_server_hangs(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    proxy.hold()
    started_at = trio.current_time()
    with pytest.raises(PortUnavailable):
        await records.jobs.get(job.id)
    assert trio.current_time() - started_at < 3
    proxy.let_go()
    assert await records.jobs.get(job.id) == job


async def test_the_store_works_on_after_a_cancelled_operation(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    jobs = [a_job() for _ in range(10)]
    for job in jobs:
        await records.jobs.insert(job)
    for _ in range(3):
        proxy.hold()
        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(records.jobs.get, job.id)
            await proxy.holding.wait()
            nursery.cancel_scope.cancel()
        proxy.let_go()
        assert [await records.jobs.get(job.id) for job in jobs] == jobs


async def test_a_cancelled_preparation_is_done_by_the_next_operation(
    short_deadlines: None, asyncio_room: None, raw: Raw, mongo_uri: str
) -> None:
    raw.client.drop_database(raw.name)
    async with (
        lossy_proxy(mongo_uri) as (proxy, address),
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
    ):
        proxy.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(records.jobs.latest_ended)
            await proxy.holding.wait()
            nursery.cancel_scope.cancel()
        proxy.let_go()
        assert await records.jobs.latest_ended() is None
    assert "uniq_job_hash_active" in raw["job"].index_information()
