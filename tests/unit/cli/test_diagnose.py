"""`fetcher diagnose` as a command: where its archive lies, how it ends, what it says."""

import json
import re
import stat
import sys
from pathlib import Path

import pytest

from fetcher.cli import diagnose, main
from fetcher.cli.shared_options import LoadedSettings
from fetcher.commands.diagnosis import PartResult
from fetcher.domain.tenants import NO_TENANT
from fetcher.log_secrets import live_secrets
from fetcher.settings import Role, SettingNotes, Settings


class Command:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *options: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["fetcher", "diagnose", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        told = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, told.out, told.err


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    monkeypatch.chdir(tmp_path)
    for name in ("APP_ENC_KEY", "FETCHER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SERVER_ADDRESS", "127.0.0.1:1")
    return Command(monkeypatch, capsys)


def test_its_name_tells_host_and_time_and_nothing_else_is_made(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "a host/../\x1b[2J")
    code, out, _ = run()
    [path] = tmp_path.iterdir()
    assert re.fullmatch(r"fetcher-diagnosis-a-host-\.\.-2J-\d{8}T\d{6}Z\.tar\.gz", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert code == 0
    assert f"{path}: written" in out
    assert "refused: FETCHER_DATA_DIR: fetcher-data has no records" in out


def test_json_is_the_summary_with_the_path(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.tar.gz"
    code, out, _ = run(f"--output={path}", "--json")
    told = json.loads(out)
    assert (code, told["path"], told["whole"]) == (0, str(path), False)
    assert told["parts"]["versions"] == {
        "file": "versions.json",
        "ok": True,
        "seconds": told["parts"]["versions"]["seconds"],
        "failure": None,
    }


def test_what_is_there_is_not_written_over(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.tar.gz"
    path.symlink_to(tmp_path / "nowhere")
    assert run(f"--output={path}") == (1, "", f"diagnose: {path}: is there already\n")
    assert not (tmp_path / "nowhere").exists()


def test_where_it_cannot_be_written_it_ends_with_1(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "no-folder" / "mine.tar.gz"
    code, out, err = run(f"--output={path}")
    assert (code, out) == (1, "")
    assert err.endswith(f"diagnose: {path}: No such file or directory\n")


@pytest.mark.parametrize("url", ["manager:4006", "http://me:canary-1@manager"])
def test_a_bad_address_is_a_usage_error_that_does_not_repeat_it(run: Command, url: str) -> None:
    code, out, err = run(f"--url={url}")
    assert (code, out) == (2, "")
    assert "canary" not in err
    assert err.startswith("diagnose: --url: must be http")


def test_a_worker_is_not_asked_for_what_only_managers_tell() -> None:
    loaded = LoadedSettings(settings=Settings(), notes=SettingNotes(), role=Role.WORKER)
    parts = diagnose.all_parts(loaded, NO_TENANT, None, must_answer=False)
    assert "service" not in {part.name for part in parts}
    assert {"settings", "versions", "probes", "disks"} <= {part.name for part in parts}


def test_a_secret_in_any_part_is_masked() -> None:
    live_secrets.hold(["canary-of-a-part"])
    result = PartResult(name="x", seconds=1, facts={"canary-of-a-part": ["a canary-of-a-part"]})
    files = diagnose.files_of(diagnose.summary_of({}, [result]), [result])
    assert json.loads(files["x.json"]) == {"ok": True, "***": ["a ***"]}
