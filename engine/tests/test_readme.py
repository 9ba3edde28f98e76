"""The README's examples run as they stand, and print what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .readme import README, csv_commands, csv_output, csv_program, python_blocks


def run(program: str, folder: Path, *arguments: str) -> str:
    """What a program prints, to which every warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(README.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_first_program_reads_the_folder_that_the_commands_make(tmp_path: Path) -> None:
    *make_the_folder, run_the_program = csv_commands().splitlines()
    assert run_the_program == "python extract.py shop"
    subprocess.run(["sh", "-e", "-c", "\n".join(make_the_folder)], cwd=tmp_path, check=True)
    assert run(csv_program(), tmp_path, "shop") == csv_output()


def test_first_program_has_forty_lines_beside_its_imports() -> None:
    code = [line for line in csv_program().splitlines() if line.strip()]
    assert len([line for line in code if not line.startswith(("import ", "from "))]) <= 40


def test_other_examples_run_one_after_the_other(tmp_path: Path) -> None:
    assert run("\n".join(python_blocks()[1:]), tmp_path) == ""


def test_no_fence_is_overlooked() -> None:
    languages = re.findall(r"^```(.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)[::2]
    assert set(languages) == {"python", "sh", "json", "text"}
    assert languages.count("python") == len(python_blocks())
