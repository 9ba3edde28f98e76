"""Installs Debian's packages without letting them start anything."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
# invoke-rc.d asks this program before it starts a service; 101 is "action forbidden by policy"
POLICY_TEXT = "#!/bin/sh\nexit 101\n"
ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
DEADLINE_SECONDS = 900.0

Run = Callable[[Sequence[str]], None]


class InstallationError(Exception):
    """apt-get failed; the text says at which command."""


def commands(packages: Sequence[str]) -> list[list[str]]:
    """What is run, in this order, to install the packages."""
    apt = ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=120"]
    return [
        [*apt, "update"],
        [*apt, "install", "--yes", "--no-install-recommends", *packages],
    ]


def can_install() -> bool:
    """Whether we are root on a Debian."""
    return (
        os.geteuid() == 0
        and Path("/etc/debian_version").exists()
        and shutil.which("apt-get") is not None
    )


@contextmanager
def services_held_back(policy: Path = POLICY) -> Iterator[None]:
    """While this is open, installed services don't start. An own policy is put back afterwards."""
    saved = policy.with_name(policy.name + ".saved-by-fetcher")
    if policy.exists():
        policy.rename(saved)
    try:
        policy.write_text(POLICY_TEXT)
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink(missing_ok=True)
        if saved.exists():
            saved.rename(policy)


def install(packages: Sequence[str], *, run: Run, policy: Path = POLICY) -> None:
    """Install the packages; nothing is started.

    Raises:
        InstallationError: a command failed. The policy is gone (or back) in any case.
    """
    with services_held_back(policy):
        for command in commands(packages):
            run(command)


def run_apt(command: Sequence[str]) -> None:
    """Run one command, its output where ours goes.

    Raises:
        InstallationError: it failed or took longer than 15 minutes.
    """
    environment = {**os.environ, **ENVIRONMENT}
    try:
        subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=DEADLINE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as failure:
        reason = str(failure)
    else:
        return
    raise InstallationError(reason)
