"""`scripts/setup.sh` on machines that lack something: one line, and nothing made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[3] / "scripts" / "setup.sh"
NEEDED = ("bash", "cat", "dirname", "rm", "sha256sum", "env")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder to be the whole path, with what the script needs but no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None, name
        (folder / name).symlink_to(found)
    return folder


def a_python(folder: Path, name: str, *, refuses: str) -> None:
    """A Python that fails when its code contains a text, as one without a module does."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *{refuses}*) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)


def run_setup(programs: Path, venv: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [SETUP, "runtime"],
        env={"PATH": str(programs), "VENV": str(venv), "HOME": os.devnull},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_the_venv_module_it_says_the_one_line_and_stops(
    programs: Path, tmp_path: Path
) -> None:
    a_python(programs, "python3", refuses="ensurepip")
    ended = run_setup(programs, tmp_path / "venv")
    assert ended.stderr == (
        "setup: Python's venv module is missing: "
        "run 'apt-get install python3-venv' as root, then try again\n"
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert not (tmp_path / "venv").exists()


def test_without_a_suitable_python_it_says_the_one_line_and_stops(
    programs: Path, tmp_path: Path
) -> None:
    a_python(programs, "python3", refuses="version_info")
    ended = run_setup(programs, tmp_path / "venv")
    assert ended.stderr == (
        "setup: Python 3.11, 3.12 or 3.13 is needed and none was found (set PYTHON to name one)\n"
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert not (tmp_path / "venv").exists()
