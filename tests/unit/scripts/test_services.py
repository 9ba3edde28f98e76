from pathlib import Path

import pytest

from scripts import services
from scripts.servers.catalogue import SERVICES


@pytest.mark.parametrize("arguments", [[], ["start"], ["up", "down"]])
def test_wrong_use_is_answered_with_the_manual(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert services.main(arguments) == 2
    assert "scripts/services.py up|down|status" in capsys.readouterr().err


def test_an_unknown_mode_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FETCHER_SERVICES", "shared")
    assert services.main(["up"]) == 2
    assert capsys.readouterr().err == "services: FETCHER_SERVICES is 'private' or unset\n"


def test_every_server_is_named_by_one_of_its_own_settings() -> None:
    for service in SERVICES:
        assert service.variable in service.settings(1234), service.name
        assert service.package or service.remedy or service.name == "MongoDB"


def test_settings_of_all_servers_are_good_for_a_shell() -> None:
    for service in SERVICES:
        for key, value in service.settings(1234).items():
            assert not set(f"{key}{value}") & set(" \t\n'\"`$&;|<>()*?\\"), key


def test_a_folder_that_is_not_ours_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(services, "FOLDER", tmp_path / "file" / "folder")
    monkeypatch.delenv("FETCHER_SERVICES", raising=False)
    assert services.main(["status"]) == 1
    assert capsys.readouterr().err.startswith("services: [Errno 20] Not a directory")
