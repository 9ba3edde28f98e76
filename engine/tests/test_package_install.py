"""A stranger installs the package into an empty environment and follows the README.

Twice: as the README says, ``pip install ./engine``, for which pip gets hatchling from its index;
and without any index, from a wheel that the development environment's hatchling has built, so that
a dependency, were there one, could not be found.
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
    """An environment that is empty but for what is then installed into it."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Installation":
        venv = [sys.executable, "-m", "venv", str(folder)]
        require(venv, "Python's venv or ensurepip module is missing (Debian: python3-venv)")
        return cls(folder)

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


def pip_from_index(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pip as whoever runs the tests has configured it."""
    return subprocess.run(
        [python, "-I", "-m", "pip", "--disable-pip-version-check", *arguments],
        cwd=ENGINE.parent,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def index(tmp_path: Path) -> None:
    """Pip's index answers; without one the test is skipped, or fails where CI says there is one."""
    soon = ["--retries", "1", "--timeout", "20"]
    target = ["--no-deps", "--dest", str(tmp_path / "probe"), "hatchling"]
    done = pip_from_index(sys.executable, "download", "--quiet", *soon, *target)
    if done.returncode == 0:
        return
    text = (
        "pip reaches no package index that has hatchling, which builds the package: "
        "`pip install ./engine` was not tried, only the wheel made here, without an index"
    )
    if os.environ.get("FETCHER_TEST_INDEX") == "required":
        pytest.fail(f"{text}\n{done.stderr}", pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        pytest.fail("hatchling is not installed: the wheel cannot be built", pytrace=False)
    dist = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
    require(build, "the wheel cannot be built")
    (built,) = dist.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    environment = Installation.make(tmp_path_factory.mktemp("empty") / "venv")
    pip = [environment.python, "-I", "-m", "pip", "--disable-pip-version-check"]
    environment.run(*pip, "install", "--quiet", "--no-index", str(wheel))
    return environment


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the README's program in it, and nothing else."""
    (tmp_path / "extract.py").write_text(csv_program(), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("index")
def test_pip_install_of_the_folder_as_the_readme_says(tmp_path: Path, shop: Path) -> None:
    environment = Installation.make(tmp_path / "venv")
    done = pip_from_index(environment.python, "install", "./engine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert installed_packages(environment) == {"fetcher-engine": VERSION}
    assert environment.run("sh", "-e", "-c", csv_commands(), cwd=shop) == csv_output()


def test_wheel_holds_the_package_its_types_and_its_license_only(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"fetcher_engine-{VERSION}.dist-info"
        headers, _, description = archive.read(f"{info}/METADATA").decode().partition("\n\n")
        license_text = archive.read(f"{info}/licenses/LICENSE").decode()
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


def installed_packages(environment: Installation) -> dict[str, str]:
    """Name and version of each, but for what venv itself brings."""
    pip = [environment.python, "-I", "-m", "pip", "--disable-pip-version-check"]
    listing = json.loads(environment.run(*pip, "list", "--format=json"))
    packages = {package["name"]: package["version"] for package in listing}
    return {name: packages[name] for name in packages if name not in ("pip", "setuptools")}


def test_nothing_else_was_installed(installed: Installation) -> None:
    assert installed_packages(installed) == {"fetcher-engine": VERSION}


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
