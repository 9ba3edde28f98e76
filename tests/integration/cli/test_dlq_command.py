"""`fetcher dlq` on a real broker, and on the file of the embedded queue."""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.dead_letters import dead_letter
from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.bridge import open_asyncio
from fetcher.cli import main
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import Job
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import OutgoingMessage, RecordStore, RejectReason
from tests.contract.dead_letters.conftest import declare_dead_letters, publish_all
from tests.contract.queue.work_queues import broker_address
from tests.contract.records.builders import a_job, ago
from tests.scale import scaled

pytestmark = pytest.mark.integration

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SIGNER = MessageSigner(KeyRing.from_text(KEY, version="1", previous="").current.internal_hmac)
PADDING = "x" * 4096
INSERTERS = 20


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str]]:
    """The command with its exit code and what it printed."""
    monkeypatch.setenv("APP_ENC_KEY", KEY)
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path / "data"))

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["fetcher", "dlq", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        told = capsys.readouterr()
        return ended.value.code, told.out + told.err

    return command


def letter_of(
    job: Job, *, reason: RejectReason = RejectReason.UNREADABLE_JOB, key: bytes | None = None
) -> OutgoingMessage:
    body = encode_work_message(job)
    signer = MessageSigner(key) if key is not None else SIGNER
    signed = signer.headers(
        tenant="", body=body, exchange="", routing_key="work", timestamp=1773480413
    )
    headers = {**work_headers(job), **signed}
    return dead_letter(body=body, headers=headers, exchange="", routing_key="work", reason=reason)


@pytest.fixture
def fill(
    broker_settings: None,
    amqp_url: str,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Sequence[OutgoingMessage]], None]:
    """Puts letters into a queue of this test, which the command takes for its own."""
    name = amqp_name("dlq")
    monkeypatch.setattr(
        "fetcher.bootstrap.dead_letters.AmqpDeadLetterQueue",
        partial(AmqpDeadLetterQueue, queue=name),
    )

    async def publish(messages: Sequence[OutgoingMessage]) -> None:
        async with open_asyncio(lambda _: None):
            connection = BrokerConnection(broker_address(amqp_url), name="test")
            await declare_dead_letters(connection, name)
            await publish_all(connection, name, messages)
            await connection.aclose()

    return lambda messages: trio.run(publish, messages)


async def insert_each(records: RecordStore, jobs: Sequence[Job]) -> None:
    for job in jobs:
        await records.jobs.insert(job)


def stored(tmp_path: Path, jobs: Sequence[Job]) -> None:
    """These records, in the data folder."""

    async def insert() -> None:
        with own_data_folder(tmp_path / "data") as folder:
            async with (
                open_sqlite_records(folder.database) as records,
                trio.open_nursery() as nursery,
            ):
                for first in range(INSERTERS):
                    nursery.start_soon(insert_each, records, jobs[first::INSERTERS])

    trio.run(insert)


def undispatched(tmp_path: Path, *, limit: int = 50) -> set[str]:
    async def claim() -> set[str]:
        with own_data_folder(tmp_path / "data") as folder:
            async with open_sqlite_records(folder.database) as records:
                claims = await records.dispatch.claim_due(limit=limit, lease_seconds=0)
                return {str(claim.job.id) for claim in claims}

    return trio.run(claim)


def eventually_total(run: Callable[..., tuple[int, str]], total: int) -> Any:
    """The list, once the broker has put back what was in hand."""
    deadline = time.monotonic() + 10
    while True:
        code, told = run("list", "--json")
        assert code == 0, told
        found = json.loads(told)
        if found["total"] == total or time.monotonic() > deadline:
            assert found["total"] == total
            return found
        time.sleep(0.05)


def test_letters_are_listed_shown_redriven_and_purged(
    run: Callable[..., tuple[int, str]],
    fill: Callable[[Sequence[OutgoingMessage]], None],
    tmp_path: Path,
) -> None:
    job, unknown, forged = a_job(dispatched_at=ago(60)), a_job(), a_job()
    stored(tmp_path, [job])
    fill(
        [
            letter_of(job),
            letter_of(unknown, reason=RejectReason.UNKNOWN_JOB),
            letter_of(forged, reason=RejectReason.BAD_SIGNATURE, key=b"x" * 32),
        ]
    )
    letters = {each["jobId"]: each for each in eventually_total(run, 3)["letters"]}
    assert {name: (each["reason"], each["genuine"]) for name, each in letters.items()} == {
        str(job.id): ("unreadable_job", True),
        str(unknown.id): ("unknown_job", True),
        str(forged.id): ("bad_signature", False),
    }
    assert letters[str(job.id)]["sentAt"] == "2026-03-14T09:26:53Z"
    eventually_total(run, 3)
    code, told = run("show", str(forged.id), "--json")
    shown = json.loads(told)
    assert (code, shown["routingKey"], shown["genuine"]) == (0, "work", False)
    assert json.loads(shown["body"])["jobId"] == str(forged.id)
    eventually_total(run, 3)
    code, told = run("redrive", "--json")
    assert code == 1
    results = json.loads(told)
    assert results["results"] == {"dispatched": 1, "unknown": 1, "unverified": 1}
    assert {(each["jobId"], each["why"]) for each in results["skipped"]} == {
        (str(unknown.id), "unknown"),
        (str(forged.id), "unverified"),
    }
    assert undispatched(tmp_path) == {str(job.id)}
    eventually_total(run, 2)
    assert run("purge", "--reason=bad_signature")[0] == 2
    eventually_total(run, 2)
    assert run("purge", "--reason=bad_signature", "--yes") == (0, "1 purged\n")
    assert eventually_total(run, 1)["letters"][0]["jobId"] == str(unknown.id)


def test_ten_thousand_letters_take_a_minute_at_most(
    run: Callable[..., tuple[int, str]],
    fill: Callable[[Sequence[OutgoingMessage]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = scaled(1_000)
    jobs = [
        a_job(dispatched_at=ago(60), metadata={"source": "acme", "padding": PADDING})
        for _ in range(count)
    ]
    stored(tmp_path, jobs)
    fill([letter_of(job) for job in jobs])
    eventually_total(run, count)
    seconds: dict[str, float] = {}
    for command, *options in (
        ("list", f"--limit={count}", "--json"),
        ("redrive", "--rate=10000"),
    ):
        began = time.monotonic()
        code, told = run(command, *options)
        seconds[command] = time.monotonic() - began
        assert code == 0, told[-500:]
        if command == "list":
            eventually_total(run, count)
    with capsys.disabled():
        print(f"\n{count} letters: {seconds}")
    assert max(seconds.values()) < 60
    eventually_total(run, 0)
    assert undispatched(tmp_path, limit=count + 1) == {str(job.id) for job in jobs}


def test_memory_does_not_grow_with_the_letters(
    run: Callable[..., tuple[int, str]], fill: Callable[[Sequence[OutgoingMessage]], None]
) -> None:
    padding = "x" * 65536
    jobs = [a_job(metadata={"source": "acme", "padding": padding}) for _ in range(600)]
    fill([letter_of(job) for job in jobs])
    eventually_total(run, 600)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert run("purge", "--yes") == (0, "600 purged\n")
        grown = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # 40 MB of bodies; a page is 8 MiB at most and lies here a few times, as frames and as bodies
    assert grown < 28 * 1024 * 1024


def test_a_queue_that_is_missing_is_told(
    run: Callable[..., tuple[int, str]],
    broker_settings: None,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "fetcher.bootstrap.dead_letters.AmqpDeadLetterQueue",
        partial(AmqpDeadLetterQueue, queue=amqp_name("none")),
    )
    assert run("list") == (1, "dlq: the broker has no such queue or exchange\n")


def test_the_embedded_file_is_listed_beside_the_service_and_changed_without_it(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    job, unknown = a_job(created_at=datetime.now(UTC), dispatched_at=ago(60)), a_job()
    stored(tmp_path, [job])

    async def write() -> None:
        with own_data_folder(tmp_path / "data") as folder:
            async with open_event_log(folder.dead_letters) as log:
                for each in (unknown, job):
                    await log.publish(letter_of(each, reason=RejectReason.UNKNOWN_JOB))

    trio.run(write)
    with own_data_folder(tmp_path / "data"):
        code, told = run("list", "--json")
        assert [each["jobId"] for each in json.loads(told)["letters"]] == [
            str(unknown.id),
            str(job.id),
        ]
        code, told = run("redrive")
        assert code == 1
        assert "is in use by process" in told
    code, told = run("redrive")
    assert code == 1
    assert told == f"1: {unknown.id}: skipped: no job has this id\n1 dispatched anew, 1 skipped\n"
    assert undispatched(tmp_path) == {str(job.id)}
    assert "Dead letters: 1 of 1" in run("list")[1]
    assert run("purge", "--yes", "--json") == (0, '{"purged": 1}\n')
    assert (tmp_path / "data" / "dead-letters.jsonl").read_bytes() == b""


@pytest.mark.parametrize("which", ["0", "-1", "x", "1" * 40])
def test_what_names_no_letter_is_refused(run: Callable[..., tuple[int, str]], which: str) -> None:
    assert run("show", "--", which)[0] == 2
