"""Servers of a test's own: stopped, started again and paused, unlike the shared ones."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scripts.servers.catalogue import LOOPBACK, SERVICES
from scripts.servers.daemons import Daemon, descendants, free_port, stop, wait_ready
from scripts.servers.launches import Place


class OwnServer:
    """One of the catalogue's servers. What it keeps over a restart is its kind's business."""

    def __init__(self, kind: str, folder: Path) -> None:
        [self._service] = [each for each in SERVICES if each.name == kind]
        launch = self._service.find()
        if launch is None:
            pytest.fail(f"{kind} is not installed: make services", pytrace=False)
        self._launch = launch
        self._place = Place(data=folder / "data", log=folder / "log", port=free_port())
        self._daemons: list[Daemon] = []
        self.port = self._place.port
        self.log_path = self._place.log

    @property
    def control_command(self) -> str:
        """RabbitMQ's ``rabbitmqctl``, which finds this broker and no other."""
        return str(self._place.data / f"rabbitmqctl-{self.port}")

    def start(self) -> None:
        """Return once it answers."""
        self._launch(self._place, self._daemons.append)
        wait_ready(
            self._daemons[-1], self._refuses_by, deadline_seconds=self._service.start_seconds
        )

    def stop(self) -> None:
        stop(self._daemons)
        self._daemons.clear()

    def environment(self) -> dict[str, str]:
        """What the server was started with: its own tools find it by that."""
        [*_, server] = self._daemons
        entries = Path(f"/proc/{server.process.pid}/environ").read_bytes().split(b"\0")
        found = (entry.decode().partition("=") for entry in entries if entry)
        return {name: value for name, _, value in found}

    def pause(self) -> None:
        """Connections stand, the system accepts new ones, and nobody answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for daemon in self._daemons:
            for each in (daemon.process, *descendants(daemon.process)):
                with suppress(ProcessLookupError):
                    os.kill(each.pid, number)

    def _refuses_by(self) -> str | None:
        try:
            self._service.admits(LOOPBACK, self.port)
        except Exception as reason:  # noqa: BLE001 - refused, reset, not yet admitting: not yet
            return str(reason)
        return None


@contextmanager
def own_server(kind: str) -> Iterator[OwnServer]:
    """Running, until the block ends."""
    # Not below pytest's folder: the server's own user must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix="fetcher-server-"))
    folder.chmod(0o755)
    server = OwnServer(kind, folder)
    try:
        server.start()
        yield server
    finally:
        server.resume()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
