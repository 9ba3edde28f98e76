from pathlib import Path

import pytest

from scripts.servers import launches


def a_program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_newest_postgresql_is_chosen_by_number(tmp_path: Path) -> None:
    for version in ("9", "17", "15", "common"):
        a_program(tmp_path / version / "bin" / "postgres")
    found = [folder.parent.name for folder in launches.postgres_folders(tmp_path)]
    assert found == ["17", "15", "9"]


def test_a_program_is_looked_for_in_its_folders_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = a_program(tmp_path / "path" / "fishd")
    in_folder = a_program(tmp_path / "own" / "fishd")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert launches.executable("fishd") == on_path
    assert launches.executable("fishd", folders=[tmp_path / "own"]) == in_folder
    assert launches.executable("birdd", "fishd") == on_path
    assert launches.executable("birdd") is None


@pytest.mark.parametrize(
    "find",
    [launches.find_postgres, launches.find_mariadb, launches.find_redis, launches.find_rabbitmq],
)
def test_a_server_without_its_programs_is_not_found(
    find: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "executable", lambda *_, **__: None)
    assert callable(find)
    assert find() is None
