"""The virtual environment of the MongoDB-compatible test server.

The server's code is GPL-2. It lives in an environment of its own and runs in a process of its own;
nothing of the product imports, requires or ships it.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DEADLINE_SECONDS = 900.0


class VenvError(Exception):
    """The environment could not be made; the text says why and what to do."""


def ensure(venv: Path, requirements: Path) -> Path:
    """The server's command, installed hash by hash when the pinned set has changed.

    Raises:
        VenvError: making or filling the environment failed.
    """
    command = venv / "bin" / "secantusd-py"
    stamp = venv / ".installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and command.exists():
        return command
    print(f"services: installing the MongoDB-compatible test server into {venv.name}", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    _run(
        [sys.executable, "-m", "venv", str(venv)],
        hint="Python's venv module is missing: run 'apt-get install python3-venv' as root",
    )
    _run(
        [
            str(venv / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "--only-binary=:all:",
            "-r",
            str(requirements),
        ],
        hint="set FETCHER_TEST_MONGO_URI to use a MongoDB of your own instead",
    )
    stamp.write_text(wanted)
    return command


def _run(command: Sequence[str], *, hint: str) -> None:
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=DEADLINE_SECONDS)
    except (OSError, subprocess.SubprocessError) as failure:
        message = f"{failure} ({hint})"
    else:
        return
    raise VenvError(message)
