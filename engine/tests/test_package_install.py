"""A stranger installs the built package into an empty environment and follows the README.

Nothing is downloaded: the wheel is built by the development environment's hatchling, and pip gets
no index, so that a dependency, were there one, could not be found.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from .readme import README, csv_commands, csv_output, csv_program

ENGINE = Path(__file__).parents[1]
VERSION = tomllib.loads((ENGINE / "pyproject.toml").read_text())["project"]["version"]


@dataclass(frozen=True)
class Installation:
    """An environment that was empty before the wheel came into it."""

    folder: Path
    wheel: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def variables(self) -> Mapping[str, str]:
        """Nothing of the environment that runs the tests."""
        path = os.pathsep.join([str(self.folder / "bin"), os.defpath])
        return {"PATH": path, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """What a command prints; it must succeed and complain of nothing."""
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def require(command: list[str], missing: str) -> None:
    """Run a command of the development environment; a failure says what that environment lacks."""
    done = subprocess.run(command, cwd=ENGINE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"{missing}\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    if importlib.util.find_spec("hatchling") is None:
        pytest.fail("hatchling is not installed: the wheel cannot be built", pytrace=False)
    dist = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
    require(build, "the wheel cannot be built")
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv = [sys.executable, "-m", "venv", str(folder)]
    require(venv, "Python's venv or ensurepip module is missing (Debian: python3-venv)")
    (wheel,) = dist.iterdir()
    environment = Installation(folder, wheel)
    pip = [environment.python, "-I", "-m", "pip", "--disable-pip-version-check"]
    environment.run(*pip, "install", "--quiet", "--no-index", str(wheel))
    return environment


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the README's program in it, and nothing else."""
    (tmp_path / "extract.py").write_text(csv_program(), encoding="utf-8")
    return tmp_path


def test_wheel_holds_the_package_its_types_and_its_license_only(installed: Installation) -> None:
    with ZipFile(installed.wheel) as wheel:
        names = wheel.namelist()
        info = f"fetcher_engine-{VERSION}.dist-info"
        headers, _, description = wheel.read(f"{info}/METADATA").decode().partition("\n\n")
        license_text = wheel.read(f"{info}/licenses/LICENSE").decode()
    assert {name.partition("/")[0] for name in names} == {"fetcher_engine", info}
    assert "fetcher_engine/py.typed" in names
    assert "fetcher_engine/memory/__init__.py" in names
    sources = sorted(n.removeprefix("fetcher_engine/") for n in names if n.endswith(".py"))
    package = ENGINE / "fetcher_engine"
    assert sources == sorted(p.relative_to(package).as_posix() for p in package.rglob("*.py"))
    assert license_text == (ENGINE.parent / "LICENSE").read_text(encoding="utf-8")
    assert description == README.read_text(encoding="utf-8")
    metadata = HeaderParser().parsestr(headers)
    assert (metadata["Name"], metadata["Version"]) == ("fetcher-engine", VERSION)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert metadata.get_all("Requires-Dist") is None
    assert metadata.get_all("Provides-Extra") is None


def test_nothing_else_was_installed(installed: Installation) -> None:
    listing = installed.run(
        installed.python, "-I", "-m", "pip", "--disable-pip-version-check", "list", "--format=json"
    )
    packages = {package["name"]: package["version"] for package in json.loads(listing)}
    assert packages.pop("fetcher-engine") == VERSION
    assert packages.keys() <= {"pip", "setuptools"}  # what venv itself brings


def test_installed_metadata_requires_nothing(installed: Installation) -> None:
    program = (
        "import importlib.metadata as m, fetcher_engine;"
        "print(m.requires('fetcher-engine'), m.version('fetcher-engine'), fetcher_engine.__file__)"
    )
    requires, version, file = installed.run(installed.python, "-I", "-c", program).split()
    assert (requires, version) == ("None", VERSION)
    assert Path(file).is_relative_to(installed.folder)


def test_readme_commands_print_what_the_readme_says(installed: Installation, shop: Path) -> None:
    assert installed.run("sh", "-e", "-c", csv_commands(), cwd=shop) == csv_output()
    isolated = installed.run(installed.python, "-I", "-W", "error", "extract.py", "shop", cwd=shop)
    assert isolated == csv_output()


def test_readme_program_is_accepted_by_a_strict_type_checker(
    installed: Installation, shop: Path
) -> None:
    (shop / "mistake.py").write_text(
        "from fetcher_engine import Limits\n\nLimits(max_datasources='ten')\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    options = ["--python-executable", installed.python, "--cache-dir", str(shop / "cache")]
    done = subprocess.run(
        [*mypy, *options, "extract.py", "mistake.py"],
        cwd=shop,
        env=installed.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        'mistake.py:3: error: Argument "max_datasources" to "Limits" has incompatible type "str"; '
        'expected "int"  [arg-type]'
    ]
