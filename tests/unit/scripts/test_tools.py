from collections.abc import Sequence

import pytest

from scripts.servers import tools
from scripts.servers.debian import InstallationError


class Machine:
    """Programs on a path, and a package manager that brings them."""

    def __init__(self, *, offers: bool = True) -> None:
        self.programs: set[str] = set()
        self.installed: list[str] = []
        self._offers = offers

    def find(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.programs else None

    def install(self, packages: Sequence[str]) -> None:
        self.installed += packages
        if not self._offers:
            raise InstallationError("no such package")
        self.programs |= {p for p, package in tools.PACKAGES.items() if package in packages}


def test_a_missing_program_comes_with_its_package() -> None:
    machine = Machine()
    assert tools.provide(machine.install, find=machine.find) == []
    assert machine.installed == ["prometheus", "chromium"]
    assert machine.find("promtool") == "/usr/bin/promtool"


def test_what_is_there_is_left_alone() -> None:
    machine = Machine()
    machine.programs = set(tools.PACKAGES)
    assert tools.provide(machine.install, find=machine.find) == []
    assert machine.installed == []


def test_where_nothing_can_be_installed_the_programs_are_named() -> None:
    assert tools.provide(None, find=Machine().find) == ["promtool", "chromium"]


def test_an_installation_that_fails_is_told() -> None:
    machine = Machine(offers=False)
    with pytest.raises(InstallationError, match="no such package"):
        tools.provide(machine.install, find=machine.find)
