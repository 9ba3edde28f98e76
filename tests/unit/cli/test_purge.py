"""`fetcher dlq purge` of a data folder says how many are gone, whatever its end: not how many were
to go."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from fetcher.adapters.local import dead_letter_file
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterWindow
from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.cli import main
from fetcher.domain.audit import AuditQuery
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable
from tests.unit.commands.test_rotate_credentials import NEW

LETTERS = 150
"""More than a page."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "fetcher-data"
    data.mkdir()
    line = json.dumps({"body": "x", "headers": {}})
    (data / "dead-letters.jsonl").write_text(f"{line}\n" * LETTERS)

    async def make_records() -> None:
        async with open_sqlite_records(data / "fetcher.db"):
            pass

    trio.run(make_records)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APP_ENC_KEY", NEW)
    return data


def purge(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(sys, "argv", ["fetcher", "dlq", "purge", "--yes"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def left(folder: Path) -> int:
    return len((folder / "dead-letters.jsonl").read_text().splitlines())


def entries(folder: Path) -> list[tuple[str, str]]:
    async def read() -> list[tuple[str, str]]:
        async with open_sqlite_records(folder / "fetcher.db") as store:
            found = await store.audit.list_page(AuditQuery())
            return [(each.target, each.outcome) for each in found.items]

    return trio.run(read)


def ends_at_the_second_page(monkeypatch: pytest.MonkeyPatch, end: BaseException) -> None:
    pages: list[int] = []
    real = LocalDeadLetterWindow.next_page

    async def next_page(self: LocalDeadLetterWindow, *, limit: int) -> list[DeadLetter]:
        pages.append(limit)
        if len(pages) == 2:
            raise end
        return await real(self, limit=limit)

    monkeypatch.setattr(LocalDeadLetterWindow, "next_page", next_page)


def fails_to_write(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_purge_that_cannot_be_written_has_purged_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.setattr(dead_letter_file, "_rewrite", fails_to_write)
    assert purge(monkeypatch) == 1
    assert capsys.readouterr().err == "dlq: the dead letters cannot be written\n"
    assert left(folder) == LETTERS
    assert entries(folder) == [("0 letters", PortUnavailable.code)]


@pytest.mark.parametrize(
    ("end", "code", "outcome"),
    [
        (PortUnavailable("the dead letters cannot be read"), 1, PortUnavailable.code),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=["failed", "interrupted"],
)
@pytest.mark.parametrize(
    ("write", "gone"), [(None, 100), (fails_to_write, 0)], ids=["written", "not-written"]
)
def test_a_purge_that_breaks_off_tells_how_many_are_gone(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    end: BaseException,
    code: int,
    outcome: str,
    write: Callable[..., None] | None,
    gone: int,
) -> None:
    ends_at_the_second_page(monkeypatch, end)
    if write is not None:
        monkeypatch.setattr(dead_letter_file, "_rewrite", write)
    assert purge(monkeypatch) == code
    told = capsys.readouterr().err
    is_told = f"dlq: broken off: {gone} were purged before" in told.splitlines()
    assert is_told is (gone > 0 or code == 130)
    assert left(folder) == LETTERS - gone
    assert entries(folder) == [(f"{gone} letters", outcome)]
