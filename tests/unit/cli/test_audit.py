"""`fetcher audit list` beside a data folder."""

import errno
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from fetcher.adapters.sqlite import open_sqlite_records, still_file
from fetcher.cli import main
from fetcher.domain.audit import AuditAction, AuditEntry
from tests.contract.records.builders import ago
from tests.contract.records.test_audit_trail import an_entry

ENTRIES = (
    an_entry(actor="acme/jane", target="[bold]t-1", outcome="FET-1001"),
    an_entry(actor="local", action=AuditAction.DEAD_LETTERS_REDRIVEN, target=""),
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path))

    def command(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["fetcher", "audit", "list", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return command


async def store(folder: Path, *entries: AuditEntry) -> None:
    async with open_sqlite_records(folder / "fetcher.db") as records:
        for entry in entries:
            await records.audit.append(entry)


def test_entries_are_shown_and_chosen(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(store, tmp_path, *ENTRIES)
    assert run() == 0
    shown = capsys.readouterr().out
    assert "acme/jane" in shown
    assert "[bold]t-1" in shown
    assert run("--action", "dlq.redriven", "--json") == 0
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["id"], told["actor"]) == (str(ENTRIES[1].id), "local")
    assert run("--actor", "acme/jane", "--json") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["outcome"] == "FET-1001"


@pytest.mark.parametrize("columns", ["60", "140"])
def test_ids_are_not_broken(
    run: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ids = [str(uuid.UUID(int=2**128 - number)) for number in (1, 2)]
    entry = an_entry(actor="acme/jane-of-a-long-name", target=ids[0], request_id=ids[1])
    trio.run(store, tmp_path, entry)
    assert run() == 0
    shown = capsys.readouterr().out
    words = [*ids, "acme/jane-of-a-long-name", entry.action.value, entry.product, entry.outcome]
    assert [each for each in words if each not in shown] == []


def test_older_entries_are_reached_by_what_was_told_at_the_end(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [an_entry(time=ago(n // 2)) for n in range(5)]
    trio.run(store, tmp_path, *entries)
    found: list[str] = []
    before: tuple[str, ...] = ()
    place = ""
    for size in (2, 2, 1):
        assert run("--json", "--limit=2", *before) == 0
        told = capsys.readouterr()
        lines = [json.loads(line) for line in told.out.splitlines()]
        assert len(lines) == size
        found += [line["id"] for line in lines]
        *_, place = told.err.split() or ["none"]
        assert place in ("none", f"{lines[-1]['time']}/{lines[-1]['id']}")
        before = ("--before", place)
    assert sorted(found) == sorted(str(entry.id) for entry in entries)
    assert place == "none"
    assert run("--json", "--before", "2001-01-01T00:00:00Z") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "place",
    [
        "yesterday",
        "2026-03-14",
        "2026-03-14T09:26:53Z/7",
        "/",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_place_that_is_none_is_refused(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], place: str
) -> None:
    assert run("--before", place) == 2
    assert "--before" in capsys.readouterr().err


def test_folder_without_records_is_told_and_stays_empty(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 1
    assert "has no records" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_unknown_action_is_refused_with_those_that_are_known(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--action", "job.exploded") == 2
    assert "connection.created, connection.changed" in capsys.readouterr().err


def test_a_folder_that_is_read_only_is_read_after_a_clean_stop(
    run: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trio.run(store, tmp_path, *ENTRIES)
    monkeypatch.setattr(still_file, "lies_read_only", lambda _: True)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(Path, "chmod", refuse)
    assert run("--json") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ENTRIES)
    assert [path.name for path in tmp_path.iterdir()] == ["fetcher.db"]
