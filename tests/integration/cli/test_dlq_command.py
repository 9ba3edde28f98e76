"""`fetcher dlq` on a real broker, and on the file of the embedded queue."""

import json
import socket
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import trio

from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.local import dead_letter_file
from fetcher.adapters.local.data_folder import own_data_folder
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import OutgoingMessage, RejectReason
from tests.contract.records.builders import a_job, ago
from tests.integration.cli.dlq import (
    audited,
    audited_targets,
    eventually_total,
    letter_of,
    stored,
    undispatched,
    written,
)
from tests.scale import scaled

pytestmark = pytest.mark.integration

PADDING = "x" * 4096


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
    assert trio.run(audited, tmp_path) == [
        ("dlq.redriven", "succeeded"),
        ("dlq.purged", "succeeded"),
    ]


def test_ten_thousand_letters_take_a_minute_of_ours_at_most(
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
    cpu_seconds: dict[str, float] = {}
    for command, *options in (
        ("list", f"--limit={count}", "--json"),
        ("redrive", "--rate=10000"),
    ):
        began, cpu_began = time.monotonic(), time.process_time()
        code, told = run(command, *options)
        seconds[command] = time.monotonic() - began
        cpu_seconds[command] = time.process_time() - cpu_began
        assert code == 0, told[-500:]
        if command == "list":
            eventually_total(run, count)
    with capsys.disabled():
        print(f"\n{count} letters: {seconds}, of our processor {cpu_seconds}")
    # The wall clock is everybody's on this machine: our own part of it must leave room.
    assert max(cpu_seconds.values()) * 10_000 / count < 60
    eventually_total(run, 0)
    assert undispatched(tmp_path) == {str(job.id) for job in jobs}


def test_memory_does_not_grow_with_the_letters(
    run: Callable[..., tuple[int, str]],
    fill: Callable[[Sequence[OutgoingMessage]], None],
    tmp_path: Path,
) -> None:
    stored(tmp_path, [])
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

    written(tmp_path, [letter_of(each, reason=RejectReason.UNKNOWN_JOB) for each in (unknown, job)])
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
    assert trio.run(audited, tmp_path) == [("dlq.redriven", "succeeded")]
    assert undispatched(tmp_path) == {str(job.id)}
    assert "Dead letters: 1 of 1" in run("list")[1]
    assert run("purge", "--yes", "--json") == (0, '{"purged": 1}\n')
    assert (tmp_path / "data" / "dead-letters.jsonl").read_bytes() == b""
    assert trio.run(audited, tmp_path) == [
        ("dlq.redriven", "succeeded"),
        ("dlq.purged", "succeeded"),
    ]
    assert trio.run(audited_targets, tmp_path) == ["1 letter", "1 letter"]


@pytest.mark.parametrize(("command", "action"), [("redrive", "redriven"), ("purge", "purged")])
def test_what_could_not_be_written_is_audited_as_failed(
    run: Callable[..., tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    action: str,
) -> None:
    """The file is written when the letters are put down: after that the deed ends."""
    job = a_job(dispatched_at=ago(60))
    stored(tmp_path, [job])
    written(tmp_path, [letter_of(job)])

    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(dead_letter_file, "_rewrite", full)
    options = ["--yes"] if command == "purge" else []
    code, told = run(command, *options)
    assert (code, "dlq: the dead letters cannot be written\n" in told) == (1, True)
    assert trio.run(audited, tmp_path) == [(f"dlq.{action}", "unavailable")]


def test_a_purge_that_could_not_be_recorded_for_want_of_records_is_refused(
    run: Callable[..., tuple[int, str]],
    fill: Callable[[Sequence[OutgoingMessage]], None],
) -> None:
    fill([letter_of(a_job())])
    code, told = run("purge", "--yes")
    assert code == 1
    assert told.startswith("dlq: FETCHER_DATA_DIR: the record store fetcher.db cannot be opened")
    eventually_total(run, 1)


def test_a_purge_with_the_records_away_is_done_and_told(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job()
    written(tmp_path, [letter_of(job)])
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
    for name, value in {
        "MONGO_HOST": "127.0.0.1",
        "MONGO_PORT": str(port),
        "MONGO_NAME": "records",
        "MONGO_USER": "u",
        "MONGO_PASSWORD": "p",
        "ALLOW_INSECURE_TLS": "true",
    }.items():
        monkeypatch.setenv(name, value)
    code, told = run("purge", "--yes")
    assert (code, "1 purged" in told) == (0, True), told
    assert "audit_not_recorded" in told


@pytest.mark.parametrize("which", ["0", "-1", "x", "1" * 40])
def test_what_names_no_letter_is_refused(run: Callable[..., tuple[int, str]], which: str) -> None:
    assert run("show", "--", which)[0] == 2


def test_list_and_show_warn_where_looks_wear_letters_out(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: object) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    stored(tmp_path, [])
    monkeypatch.setattr(LocalDeadLetterQueue, "survives_looks", never)
    assert "x-delivery-limit" not in run("list")[1]
    (tmp_path / "data" / "dead-letters.jsonl").write_text("{}\n")
    for command in (("list",), ("show", "1")):
        code, told = run(*command)
        assert (code, "x-delivery-limit" in told) == (0, True)


def test_redrive_and_purge_do_not_ask_whether_letters_stand_looks(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are what saves a letter, or throws it away: the answer changes nothing."""

    async def unanswered(_: object) -> bool:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("the broker does not tell its queue's arguments")

    job, unknown = a_job(dispatched_at=ago(60)), a_job()
    stored(tmp_path, [job])
    written(tmp_path, [letter_of(job), letter_of(unknown)])
    monkeypatch.setattr(LocalDeadLetterQueue, "survives_looks", unanswered)
    assert run("list") == (1, "dlq: the broker does not tell its queue's arguments\n")
    code, told = run("redrive", "--json")
    assert (code, json.loads(told)["results"]) == (1, {"dispatched": 1, "unknown": 1})
    assert run("purge", "--yes") == (0, "1 purged\n")
