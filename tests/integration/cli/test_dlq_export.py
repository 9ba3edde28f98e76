"""`fetcher dlq export`, and a purge of nothing but what it saved."""

import json
import os
import stat
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fetcher.adapters.local import dead_letter_file
from fetcher.ports import OutgoingMessage, RejectReason
from tests.contract.records.builders import a_job
from tests.integration.cli.dlq import eventually_total, letter_of, stored, written

pytestmark = pytest.mark.integration

MORE_THAN_A_LIST = 130
FOREIGN = b"\xff\x00 no text"


def saved(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def foreign() -> OutgoingMessage:
    return replace(letter_of(a_job(), reason=RejectReason.MALFORMED), body=FOREIGN)


def test_all_that_lie_on_the_broker_are_saved_whole_and_they_alone_are_purged(
    run: Callable[..., tuple[int, str]],
    fill: Callable[[Sequence[OutgoingMessage]], None],
    tmp_path: Path,
) -> None:
    stored(tmp_path, [])
    jobs = [a_job() for _ in range(MORE_THAN_A_LIST)]
    fill([*(letter_of(job) for job in jobs), foreign()])
    count = MORE_THAN_A_LIST + 1
    for _ in range(2):  # each look counts on the broker, and leaves its mark among the headers
        eventually_total(run, count)
    path = tmp_path / "letters.jsonl"
    assert run("export", str(path)) == (0, f"{path}: {count} of {count} dead letters\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    letters = saved(path)
    by_job = {each["jobId"]: each for each in letters if each["genuine"]}
    assert by_job.keys() == {str(job.id) for job in jobs}
    first = by_job[str(jobs[0].id)]
    original = letter_of(jobs[0])
    assert first["body"].encode() == original.body
    assert (first["reason"], first["exchange"], first["routingKey"]) == (
        "unreadable_job",
        "",
        "work",
    )
    sent = {name: value for name, value in original.headers.items() if isinstance(value, str)}
    assert first["headers"].items() >= sent.items()
    [other] = [each for each in letters if not each["genuine"]]
    assert b64decode(other["body"]["base64"]) == FOREIGN
    late = [a_job() for _ in range(2)]
    fill([letter_of(job) for job in late])
    eventually_total(run, count + 2)
    code, told = run("purge", "--listed", str(path), "--yes")
    assert (code, told) == (0, f"{count} purged\n")
    left = eventually_total(run, 2)["letters"]
    assert {each["jobId"] for each in left} == {str(job.id) for job in late}


def test_letter_that_lies_there_twice_is_purged_as_often_as_it_was_saved(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    job = a_job()
    stored(tmp_path, [])
    written(tmp_path, [letter_of(job)])
    path = tmp_path / "letters.jsonl"
    assert run("export", str(path), "--json") == (
        0,
        json.dumps({"total": 1, "saved": 1, "path": str(path)}) + "\n",
    )
    written(tmp_path, [letter_of(job), letter_of(a_job())])
    assert run("purge", "--listed", str(path), "--yes") == (0, "1 purged\n")
    assert eventually_total(run, 2)["total"] == 2
    path.write_bytes(path.read_bytes() * 2)
    assert run("purge", "--listed", str(path), "--yes") == (
        0,
        f"1 purged\ndlq: 1 of {path} were not found, or not chosen\n",
    )
    eventually_total(run, 1)


def unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    return tmp_path / "letters.jsonl"


def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "letters.jsonl"
    path.write_text("mine\n")
    return path


def without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tmp_path / "none" / "letters.jsonl"


def unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(dead_letter_file, "_read_page", broken)
    return tmp_path / "letters.jsonl"


@pytest.mark.parametrize(
    ("prepare", "complaint"),
    [
        (unwritable, "No space left on device"),
        (taken, "there is something already"),
        (without_a_folder, "No such file or directory"),
        (unreadable, "the dead letters cannot be read"),
    ],
)
def test_export_that_fails_leaves_no_file_by_which_a_letter_could_be_purged(
    run: Callable[..., tuple[int, str]],
    tmp_path: Path,
    prepare: Callable[[Path, pytest.MonkeyPatch], Path],
    complaint: str,
) -> None:
    stored(tmp_path, [])
    written(tmp_path, [letter_of(a_job()) for _ in range(3)])
    with pytest.MonkeyPatch.context() as bent:
        path = prepare(tmp_path, bent)
        before = path.read_bytes() if path.exists() else None
        code, told = run("export", str(path))
    assert (code, complaint in told) == (1, True), told
    assert (path.read_bytes() if path.exists() else None) == before
    code, told = run("purge", "--listed", str(path), "--yes")
    assert (code, str(path) in told) == (1, True), told
    eventually_total(run, 3)


@pytest.mark.parametrize(
    "bend",
    [
        lambda whole: whole[:-1],
        lambda whole: whole + b"[]\n",
        lambda whole: whole + b"{}\n",
        lambda whole: whole + b"[" * 100_000 + b"\n",
        lambda whole: whole + b"\xff\n",
        lambda _: b'{"total": 3, "letters": []}\n',
    ],
)
def test_file_that_is_no_whole_export_purges_nothing(
    run: Callable[..., tuple[int, str]], tmp_path: Path, bend: Callable[[bytes], bytes]
) -> None:
    stored(tmp_path, [])
    written(tmp_path, [letter_of(a_job()) for _ in range(3)])
    path = tmp_path / "letters.jsonl"
    assert run("export", str(path))[0] == 0
    path.write_bytes(bend(path.read_bytes()))
    code, told = run("purge", "--listed", str(path), "--yes")
    assert (code, str(path) in told) == (1, True), told
    eventually_total(run, 3)


def test_letter_that_was_saved_otherwise_than_it_lies_there_stays(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """Whoever damages what was saved loses no letter by it."""
    stored(tmp_path, [])
    written(tmp_path, [letter_of(a_job()) for _ in range(2)])
    path = tmp_path / "letters.jsonl"
    assert run("export", str(path))[0] == 0
    first, second = saved(path)
    first["body"] = ""
    path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    code, told = run("purge", "--listed", str(path), "--yes")
    assert (code, told.partition("\n")[0]) == (0, "1 purged")
    [left] = eventually_total(run, 1)["letters"]
    assert left["jobId"] == first["jobId"]


def test_export_of_a_part_lets_the_rest_be(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    stored(tmp_path, [])
    written(tmp_path, [letter_of(a_job()) for _ in range(5)])
    path = tmp_path / "letters.jsonl"
    assert run("export", str(path), "--limit=2") == (0, f"{path}: 2 of 5 dead letters\n")
    assert run("purge", "--listed", str(path), "--yes") == (0, "2 purged\n")
    eventually_total(run, 3)
