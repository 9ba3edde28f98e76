"""``make audit``: what it found, and that nothing is known where the advisories cannot be read."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "audit.sh"
TOOLS = ("bash", "cat", "cut", "dirname", "grep", "mktemp", "rm", "sh", "tail")
SECONDS = 60


def audited(folder: Path, *, says: str, code: int) -> subprocess.CompletedProcess[str]:
    """With a pip-audit that says so, and without npm."""
    (folder / "scripts").mkdir()
    shutil.copy(SCRIPT, folder / "scripts")
    program = folder / ".venv-audit" / "bin" / "pip-audit"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    program.chmod(0o700)
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name) or name)
    return subprocess.run(
        [folder / "scripts" / "audit.sh", sys.executable],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("says", "code", "expected"),
    [
        ("No known vulnerabilities found", 0, 0),
        ("Found 2 known vulnerabilities in 1 package", 1, 1),
        ("ERROR:pip_audit._cli: Dependency not found and could not be audited", 1, 2),
        ("ConnectionError: Max retries exceeded", 1, 2),
    ],
)
def test_its_exit_code_tells_what_is_known(
    tmp_path: Path, says: str, code: int, expected: int
) -> None:
    run = audited(tmp_path, says=says, code=code)
    assert (run.returncode, says in run.stdout + run.stderr) == (expected, True)
    assert ("nothing is known" in run.stderr) == (expected == 2)
