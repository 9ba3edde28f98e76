"""What is running, written down between commands: one JSON file, one file of settings, one lock."""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.servers.daemons import Daemon, Identity

LOCK_SECONDS = 1200.0
# a UNIX socket's path has 107 characters at most (unix(7)); servers put theirs below this folder
LONGEST_FOLDER = 70


class StateError(Exception):
    """What was written down can't be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server in use. Without ``daemons`` it isn't ours."""

    name: str
    port: int
    settings: Mapping[str, str]
    daemons: tuple[Daemon, ...] = ()
    data: str = ""

    @property
    def origin(self) -> str:
        return "started" if self.daemons else "found"


@dataclass(slots=True)
class State:
    """Everything under one folder. A change is saved at once: an interruption loses none."""

    folder: Path
    running: dict[str, Running] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "State":
        """Raise StateError when the file is damaged."""
        state = cls(folder)
        path = folder / "state.json"
        if path.exists():
            try:
                for raw in json.loads(path.read_text()):
                    state.running[raw["name"]] = _running(raw)
            except (ValueError, KeyError, TypeError) as damage:
                message = f"{path} is damaged ({damage!r}): end what it names by hand and remove it"
                raise StateError(message) from None
        return state

    def put(self, running: Running) -> None:
        self.running[running.name] = running
        self._save()

    def forget(self, name: str) -> None:
        """Drop the server and remove its data."""
        gone = self.running.pop(name, None)
        if gone and gone.data:
            shutil.rmtree(gone.data, ignore_errors=True)
        self._save()

    def write_settings(self) -> None:
        """The file that tests read: ``KEY=VALUE`` lines, also good for a shell."""
        lines = [f"{k}={v}\n" for r in self.running.values() for k, v in r.settings.items()]
        _replace(self.folder / "env", "".join(lines))

    def _save(self) -> None:
        document = [asdict(running) for running in self.running.values()]
        _replace(self.folder / "state.json", json.dumps(document, indent=1))


def _running(raw: Mapping[str, object]) -> Running:
    match raw:
        case {
            "name": str(name),
            "port": int(port),
            "settings": dict(settings),
            "daemons": list(daemons),
            "data": str(data),
        }:
            return Running(
                name=name,
                port=port,
                settings=settings,
                daemons=tuple(
                    Daemon(**{**daemon, "process": Identity(**daemon["process"])})
                    for daemon in daemons
                ),
                data=data,
            )
    raise TypeError(raw)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One command at a time works in the folder; others wait up to 20 minutes.

    Raises:
        StateError: the other one did not end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + LOCK_SECONDS
    with (folder / "lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    raise StateError("another 'services' command has not ended") from None
                time.sleep(0.2)
            else:
                break
        yield


def data_folder(candidates: Sequence[Path], *, for_others: bool) -> Path:
    """A new, empty folder below the first candidate that the servers can use.

    As root they run as other users (``for_others``), who must be let through to it; and its path
    must be short.

    Raises:
        StateError: none will do.
    """
    for candidate in candidates:
        place = candidate.resolve()
        reachable = not for_others or all(
            parent.stat().st_mode & 0o001 for parent in (place, *place.parents)
        )
        if reachable and len(str(place)) <= LONGEST_FOLDER and os.access(place, os.W_OK):
            folder = Path(tempfile.mkdtemp(prefix="fetcher-services-", dir=place))
            folder.chmod(0o755)
            return folder
    message = f"none of these folders can hold servers' data: {', '.join(map(str, candidates))}"
    raise StateError(message)
