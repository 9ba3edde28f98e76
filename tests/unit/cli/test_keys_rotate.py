"""`fetcher keys rotate` beside a data folder."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from fetcher.adapters.sqlite import open_sqlite_records
from fetcher.cli import main
from fetcher.domain.audit import AuditQuery
from fetcher.domain.connections import Connection
from tests.unit.commands.test_rotate_credentials import (
    BY_LOST,
    NEW,
    OLD,
    is_opened_by_new_alone,
    sealed,
)

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APP_ENC_KEY", NEW)
    monkeypatch.setenv("APP_ENC_KEY_VERSION", "2")
    monkeypatch.setenv("APP_ENC_KEY_PREVIOUS", f"1={OLD}")

    def command(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["fetcher", "keys", "rotate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "fetcher-data"
    data.mkdir()
    return data


def hold(folder: Path, *connections: Connection) -> None:
    async def insert() -> None:
        async with open_sqlite_records(folder / "fetcher.db") as store:
            for each in connections:
                await store.connections.insert(each)

    trio.run(insert)


def held(folder: Path, name: str) -> Connection:
    async def find() -> Connection:
        async with open_sqlite_records(folder / "fetcher.db") as store:
            [found] = await store.connections.find_by_config_names([name])
            return found

    return trio.run(find)


def outcomes(folder: Path) -> list[tuple[str, str, str]]:
    async def read() -> list[tuple[str, str, str]]:
        async with open_sqlite_records(folder / "fetcher.db") as store:
            found = await store.audit.list_page(AuditQuery())
            return [(each.actor, each.action.value, each.outcome) for each in found.items]

    return trio.run(read)


def test_a_rotation_is_planned_done_and_found_done(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(folder, sealed("shop_db"))
    assert run("--dry-run") == 1
    assert capsys.readouterr().out == (
        "1/1 shop_db: to be rotated\n"
        "key version 2: 1 to be rotated, 0 already current, 0 changed meanwhile,"
        " 0 cannot be opened\n"
    )
    assert outcomes(folder) == []
    assert run() == 0
    told = capsys.readouterr()
    assert told.err.startswith("1/1 shop_db: rotated\n")
    assert told.out == (
        "key version 2: 1 rotated, 0 already current, 0 changed meanwhile, 0 cannot be opened\n"
    )
    assert is_opened_by_new_alone(held(folder, "shop_db"))
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "keyVersion": "2",
        "dryRun": False,
        "rotated": [],
        "alreadyCurrent": 1,
        "changedMeanwhile": [],
        "cannotBeOpened": [],
    }
    assert outcomes(folder) == [("local", "keys.rotated", "succeeded")] * 2


def test_what_is_left_is_named_and_no_value_of_it(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(
        folder,
        sealed("lost\x1b[31m", BY_LOST),
        sealed("forged", password_encrypted=BY_LOST.encrypt("x")),
        sealed("shop_db"),
    )
    assert run() == 1
    told = capsys.readouterr()
    assert "forged: cannot be opened: the key of its version does not open it" in told.err
    assert "\x1b" not in told.out + told.err
    assert "1 rotated, 0 already current, 0 changed meanwhile, 2 cannot be opened" in told.out
    assert "credentials_rotated" in told.err
    assert run("--json") == 1
    again = capsys.readouterr()
    document = json.loads(again.out)
    assert (document["rotated"], document["alreadyCurrent"]) == ([], 1)
    assert {each["configName"]: each["reason"] for each in document["cannotBeOpened"]} == {
        "lost\x1b[31m": "unknown_key_version",
        "forged": "not_authentic",
    }
    assert outcomes(folder) == [("local", "keys.rotated", "partial")] * 2
    everything = "".join((*told, *again))
    for secret in (OLD, NEW, "password of forged", "password of shop_db", "key of shop_db", "CERT"):
        assert secret not in everything


def test_without_a_key_or_records_nothing_is_made(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 2
    assert capsys.readouterr().err == "keys rotate: FETCHER_DATA_DIR: fetcher-data has no records\n"
    monkeypatch.delenv("APP_ENC_KEY")
    assert run() == 2
    assert "keys rotate: APP_ENC_KEY: not set" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_away_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MONGO_URI", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100")
    monkeypatch.setenv("MONGO_NAME", "fetcher")
    monkeypatch.setenv("ALLOW_INSECURE_TLS", "true")
    assert run() == 1
    assert "keys rotate: " in capsys.readouterr().err
