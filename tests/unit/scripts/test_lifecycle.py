"""`up` and `down` over servers that are small Python programs."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.servers import daemons, lifecycle
from scripts.servers.catalogue import Service
from scripts.servers.daemons import DaemonError
from scripts.servers.launches import Launch, Place, Started
from scripts.servers.lifecycle import MissingError
from scripts.servers.probes import Line, NotAdmittedError
from scripts.servers.state import State
from tests.servers.waiting import eventually_sync

SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].sendall(b"hello")
"""


def greets(host: str, port: int) -> None:
    line = Line(host, port)
    try:
        if line.receive(5) != b"hello":
            raise NotAdmittedError("it does not greet")
    finally:
        line.close()


def launch_of(code: str) -> Launch:
    def launch(place: Place, started: Started) -> None:
        place.data.mkdir()
        command = [sys.executable, "-c", code, str(place.port)]
        started(daemons.start("server", command, log=place.log, folder=place.data))

    return launch


def a_service(
    name: str = "Fish",
    *,
    usual_port: int | None = None,
    find: Callable[[], Launch | None] = lambda: launch_of(SERVER),
    package: str | None = None,
    remedy: str = "",
    start_seconds: float = 20,
) -> Service:
    return Service(
        name=name,
        variable=f"TEST_{name.upper()}_URL",
        usual_port=usual_port,
        admits=greets,
        settings=lambda port: {f"TEST_{name.upper()}_URL": f"tcp://127.0.0.1:{port}"},
        find=find,
        start_seconds=start_seconds,
        package=package,
        remedy=remedy,
    )


class Machine:
    """The folder that ``up`` and ``down`` work in, read anew for each, as by the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def up(
        self,
        *services: Service,
        environment: dict[str, str] | None = None,
        install: Callable[[Sequence[str]], None] | None = None,
    ) -> State:
        state = State.load(self.folder)
        lifecycle.up(
            state, services, environment=environment or {}, install=install, for_others=False
        )
        return State.load(self.folder)

    def down(self) -> None:
        state = State.load(self.folder)
        assert lifecycle.down(state, list(state.running)) == []

    @property
    def settings(self) -> str:
        return (self.folder / "env").read_text()

    def data_folders(self) -> list[Path]:
        return list(self.folder.glob("fetcher-services-*"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr("scripts.servers.state.LONGEST_FOLDER", 200)
    machine = Machine(tmp_path)
    yield machine
    machine.down()
    assert machine.data_folders() == []


@contextmanager
def a_foreign_server(folder: Path) -> Iterator[int]:
    folder.mkdir()
    port = daemons.free_port()
    command = [sys.executable, "-c", SERVER, str(port)]
    daemon = daemons.start("foreign", command, log=folder / "log", folder=folder)
    try:
        eventually_sync(lambda: answers(port), deadline_seconds=20)
        yield port
    finally:
        daemons.stop([daemon])


def answers(port: int) -> bool:
    return lifecycle.refusal(a_service(), port) is None


def test_a_server_on_its_usual_port_is_used_and_never_ended(
    machine: Machine, tmp_path: Path
) -> None:
    with a_foreign_server(tmp_path / "foreign") as port:
        state = machine.up(a_service(usual_port=port))
        assert (state.running["Fish"].port, state.running["Fish"].origin) == (port, "found")
        assert machine.settings == f"TEST_FISH_URL=tcp://127.0.0.1:{port}\n"
        machine.down()
        assert answers(port)


def test_private_servers_are_started_even_where_others_run(
    machine: Machine, tmp_path: Path
) -> None:
    with a_foreign_server(tmp_path / "foreign") as port:
        machine.up(a_service(usual_port=port))
        private = machine.up(
            a_service(usual_port=port), environment={"FETCHER_SERVICES": "private"}
        ).running["Fish"]
        assert (private.origin, private.port != port) == ("started", True)
        assert answers(private.port)


def test_up_may_be_repeated(machine: Machine) -> None:
    first = machine.up(a_service()).running
    assert machine.up(a_service()).running == first
    assert len(machine.data_folders()) == 1


def test_down_ends_what_was_started(machine: Machine) -> None:
    running = machine.up(a_service()).running["Fish"]
    assert answers(running.port)
    machine.down()
    assert not answers(running.port)
    assert not daemons.is_alive(running.daemons[0].process)
    assert State.load(machine.folder).running == {}


def test_a_server_that_died_is_started_again_on_fresh_data(machine: Machine) -> None:
    dead = machine.up(a_service()).running["Fish"]
    os.kill(dead.daemons[0].process.pid, signal.SIGKILL)
    eventually_sync(lambda: not answers(dead.port), deadline_seconds=20)
    alive = machine.up(a_service()).running["Fish"]
    assert answers(alive.port)
    assert alive.data != dead.data
    assert [str(folder) for folder in machine.data_folders()] == [alive.data]


def test_a_server_that_the_user_names_is_taken_as_it_is(machine: Machine) -> None:
    ours = machine.up(a_service()).running["Fish"]
    state = machine.up(a_service(), environment={"TEST_FISH_URL": "tcp://db.example"})
    assert state.running == {}
    assert machine.settings == ""
    assert not answers(ours.port)


def test_settings_read_into_the_environment_name_the_server_that_is_up(machine: Machine) -> None:
    """As by ``. .services/env`` in a shell, before the next ``make test``."""
    first = machine.up(a_service()).running
    settings = dict(first["Fish"].settings)
    assert machine.up(a_service(), environment=settings).running == first
    assert answers(first["Fish"].port)
    assert machine.settings == f"TEST_FISH_URL={settings['TEST_FISH_URL']}\n"


def test_what_is_missing_is_told_with_the_ways_to_get_it(machine: Machine) -> None:
    missing = [
        a_service("Fish", find=lambda: None, package="fishd"),
        a_service("Bird", find=lambda: None, remedy="run 'make birds'"),
    ]
    with pytest.raises(MissingError) as told:
        machine.up(a_service("Cat"), *missing)
    assert str(told.value).splitlines() == [
        "missing: Fish, Bird",
        "  as root: apt-get install --no-install-recommends fishd",
        "  Bird: run 'make birds'",
        "  or name running ones by TEST_FISH_URL, TEST_BIRD_URL",
    ]
    assert machine.data_folders() == []


def test_missing_packages_are_installed_where_that_is_possible(machine: Machine) -> None:
    installed: list[str] = []

    def find_fish() -> Launch | None:
        return launch_of(SERVER) if "fishd" in installed else None

    state = machine.up(
        a_service("Fish", find=find_fish, package="fishd"),
        a_service("Bird", package="birdd"),
        install=installed.extend,
    )
    assert installed == ["fishd"]
    assert [running.origin for running in state.running.values()] == ["started", "started"]


def test_when_one_does_not_start_the_others_are_ended(machine: Machine) -> None:
    broken = a_service("Bird", find=lambda: launch_of("raise SystemExit('no wings')"))
    with pytest.raises(DaemonError, match=r"(?s)ended while starting.*\| no wings"):
        machine.up(a_service("Fish"), broken)
    assert State.load(machine.folder).running == {}
    assert machine.data_folders() == []


def test_when_one_does_not_start_those_of_an_earlier_up_stay(machine: Machine) -> None:
    fish = machine.up(a_service("Fish")).running["Fish"]
    broken = a_service("Bird", find=lambda: launch_of("raise SystemExit('no wings')"))
    with pytest.raises(DaemonError):
        machine.up(a_service("Fish"), broken)
    assert State.load(machine.folder).running == {"Fish": fish}
    assert answers(fish.port)


def test_an_interruption_leaves_no_server(machine: Machine) -> None:
    def interrupted(_: Place, __: Started) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.up(a_service("Fish"), a_service("Bird", find=lambda: interrupted))
    assert State.load(machine.folder).running == {}


def test_a_port_held_by_something_else_is_not_used(machine: Machine) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        state = machine.up(a_service(usual_port=deaf.getsockname()[1]))
    assert state.running["Fish"].origin == "started"
