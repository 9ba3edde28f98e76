import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.servers.testserver_venv import VenvError, ensure


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "testserver.txt"
    path.write_text("server==1 --hash=sha256:00\n")
    return path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every command that is run; making an environment leaves the server's command in it."""
    ran: list[list[str]] = []

    def run(command: Sequence[str], **_: object) -> None:
        ran.append(list(command))
        if command[1:3] == ["-m", "venv"]:
            (Path(command[3]) / "bin").mkdir(parents=True)
            (Path(command[3]) / "bin" / "secantusd-py").touch()

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_it_is_installed_by_hash_into_an_environment_of_its_own(
    tmp_path: Path, requirements: Path, commands: list[list[str]]
) -> None:
    venv = tmp_path / "venv"
    assert ensure(venv, requirements) == venv / "bin" / "secantusd-py"
    make, install = commands
    assert make[1:] == ["-m", "venv", str(venv)]
    assert install[0] == str(venv / "bin" / "python")
    assert "--require-hashes" in install
    assert install[-2:] == ["-r", str(requirements)]


def test_it_is_made_once_for_one_set_of_pins(
    tmp_path: Path, requirements: Path, commands: list[list[str]]
) -> None:
    venv = tmp_path / "venv"
    ensure(venv, requirements)
    ensure(venv, requirements)
    assert len(commands) == 2
    requirements.write_text("server==2 --hash=sha256:00\n")
    ensure(venv, requirements)
    assert len(commands) == 4


def test_a_failure_says_what_to_do(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: Sequence[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(VenvError, match="apt-get install python3-venv"):
        ensure(tmp_path / "venv", requirements)
