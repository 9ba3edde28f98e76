"""A disk of a few megabytes that one process sees at some place of its own, and that fills up.

It is mounted in the process's own mount namespace: nobody else sees it, it ends with the process
whatever becomes of the test, and a user who is not root may do so as well where the kernel lets him
have a namespace.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.e2e.cluster import ROOT, START_SECONDS, Api
from tests.servers.processes import FetcherProcess, free_port, running

MIB: Final = 1024 * 1024
RESULT_ROOM_BYTES: Final = 80 * MIB
"""The object folder wants 64 MiB free before it calls itself ready."""
BLOCK_BYTES: Final = 4096
COMMAND_SECONDS: Final = 120.0
NAME: Final = "alone"


class Place(StrEnum):
    """What lies on the small disk; everything else has room."""

    DATA = "the whole data folder"
    RESULTS = "results"
    EVENTS = "the event file"
    SPOOL = "the spool"
    LOG = "the log"
    BACKUP = "the backup"


def _mounted(folder: str, size_bytes: int) -> str:
    return f"mkdir -p {folder} && mount -t tmpfs -o size={size_bytes} none {folder}"


_MOUNTS: Final[Mapping[Place, tuple[str, str]]] = {
    Place.DATA: ("fetcher-data", _mounted("fetcher-data", RESULT_ROOM_BYTES)),
    Place.RESULTS: ("fetcher-data/objects", _mounted("fetcher-data/objects", RESULT_ROOM_BYTES)),
    Place.EVENTS: (
        "small",
        f"{_mounted('small', MIB)} && mkdir -p fetcher-data && touch small/events.jsonl"
        " fetcher-data/events.jsonl && mount --bind small/events.jsonl fetcher-data/events.jsonl",
    ),
    Place.SPOOL: ("small", _mounted("small", 2 * MIB)),
    Place.LOG: ("small", _mounted("small", MIB)),
    Place.BACKUP: ("small", _mounted("small", 16 * MIB)),
}
"""Where the disk is below the working folder, and how it comes there, in the shell's words."""


class SmallDisk:
    """Looked at from outside, while its process runs."""

    BALLAST: Final = "ballast"

    def __init__(self, process: FetcherProcess, work: Path, place: Place) -> None:
        self._process = process
        self._work = work
        self.inside = work / _MOUNTS[place][0]
        """Its path, for who is in the namespace."""

    @property
    def path(self) -> Path:
        return self._seen(self.inside)

    @property
    def data(self) -> Path:
        return self._seen(self._work / "fetcher-data")

    def log(self) -> str:
        return "".join(
            self._seen(path).read_text(errors="replace")
            for folder in (self._work, self._work / "small")
            for name in ("out.log", "err.log")
            if self._seen(path := folder / name).exists()
        )

    def fill(self, *, leaving_bytes: int = 0) -> None:
        with (self.path / self.BALLAST).open("ab", buffering=0) as ballast:
            for size in (MIB, BLOCK_BYTES):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue
            ballast.truncate(ballast.tell() - leaving_bytes)

    def give_room(self) -> None:
        (self.path / self.BALLAST).unlink()

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """A command beside the process: its exit code, and all that it said."""
        as_user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        enter = ["nsenter", f"--target={self._process.pid}", "--mount", *as_user]
        ended = subprocess.run(
            [*enter, f"--wd={self._work}", sys.executable, "-m", "fetcher", *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(self._work)},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    def _seen(self, path: Path) -> Path:
        return Path(f"/proc/{self._process.pid}/root{path}")


@contextmanager
def _in_namespace(
    folder: Path, place: Place, script: str, environment: Mapping[str, str]
) -> Iterator[tuple[FetcherProcess, SmallDisk]]:
    """``script`` runs in its working folder once the disk is there; it ends with ``exec``."""
    work = folder / "work"
    work.mkdir()
    as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    shell = f"cd {shlex.quote(str(work))} && {_MOUNTS[place][1]} && {script}"
    command = ["unshare", "--mount", *as_user, "sh", "-c", shell]
    variables = {"PYTHONPATH": str(ROOT), **environment}
    with running(command, environment=variables, folder=folder, name=NAME) as process:
        yield process, SmallDisk(process, work, place)


@contextmanager
def embedded_on_small_disk(
    folder: Path, place: Place, **changes: str
) -> Iterator[tuple[FetcherProcess, Api, SmallDisk]]:
    """``fetcher --role=all``, once it answers."""
    port = free_port()
    environment = {"SERVER_ADDRESS": f"127.0.0.1:{port}", **changes}
    if place is Place.SPOOL:
        environment["SPOOL_DIR"] = str(folder / "work" / "small")
    logs = "small/" if place is Place.LOG else ""
    command = shlex.join([sys.executable, "-m", "fetcher", "--role=all"])
    script = f"exec {command} >>{logs}out.log 2>>{logs}err.log"
    with _in_namespace(folder, place, script, environment) as (process, disk):
        process.wait_until_answers(
            f"http://127.0.0.1:{port}/health", deadline_seconds=START_SECONDS
        )
        yield process, Api(port), disk


@contextmanager
def started_twice(folder: Path, *, free_blocks: int) -> Iterator[tuple[int, str]]:
    """With so many blocks free, and then with room: how the first start ended, and what it said,
    once the second one answers."""
    port = free_port()
    command = shlex.join([sys.executable, "-m", "fetcher", "--role=all"])
    script = (
        "dd if=/dev/zero of=fetcher-data/ballast bs=4k 2>dd.log;"
        f" truncate -s -{free_blocks * BLOCK_BYTES} fetcher-data/ballast;"
        f" {command} >first.log 2>&1; echo $? >first.code; rm fetcher-data/ballast;"
        f" exec {command} >>out.log 2>>err.log"
    )
    environment = {"SERVER_ADDRESS": f"127.0.0.1:{port}"}
    with _in_namespace(folder, Place.DATA, script, environment) as (process, _):
        process.wait_until_answers(
            f"http://127.0.0.1:{port}/health", deadline_seconds=2 * START_SECONDS
        )
        work = folder / "work"
        yield int((work / "first.code").read_text()), (work / "first.log").read_text()
