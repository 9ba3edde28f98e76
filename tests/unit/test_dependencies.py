"""What the product ships with: every pin with its hashes, under a licence that fits Apache-2.0."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import (
    PackageMetadata,
    PackageNotFoundError,
    metadata,
    packages_distributions,
)
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "requirements"
COME_WITH: Final[Mapping[str, str]] = {
    "botocore": "aioboto3",
    "dnspython": "pymongo",
    "h11": "hypercorn",
    "pamqp": "aiormq",
    "pydantic-core": "pydantic",
    "sniffio": "trio",
    "werkzeug": "quart",
    "yarl": "aiohttp",
}
"""Part of what one sees of the package that brings it, so its version is that one's to choose."""
ALLOWED: Final = re.compile(
    r"MIT(-0)?( License)?|Apache(-2\.0| Software License| License 2\.0)|(3-Clause )?BSD( License)?"
    r"|BSD-[23]-Clause|ISC|PSF-2\.0|Python Software Foundation License|UPL-1\.0"
)
ALLOWED_FOR: Final[Mapping[str, str]] = {
    # weak copyleft, of the files themselves: used as they are, in files of their own
    "certifi": "Mozilla Public License 2.0 (MPL 2.0)",
    "pathspec": "Mozilla Public License 2.0 (MPL 2.0)",
    "orjson": "MPL-2.0",
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
}
_PIN: Final = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)")


def pins(name: str) -> dict[str, str]:
    """Each pin's whole entry, by its package."""
    text = (FOLDER / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found = ((_PIN.match(line), line) for line in text.splitlines())
    return {pin[1].lower(): line for pin, line in found if pin is not None}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_every_pin_has_its_hashes(name: str) -> None:
    entries = pins(name)
    assert entries
    assert {pin for pin, line in entries.items() if "--hash=sha256:" not in line} == set()


def test_what_is_shipped_is_under_a_licence_that_fits() -> None:
    judged = {}
    for package in pins("runtime.txt"):
        try:
            judged[package] = unfit(package)
        except PackageNotFoundError:
            # of another platform or Python
            continue
    assert len(judged) > 50
    assert {package: words for package, words in judged.items() if words} == {}


def _said(told: PackageMetadata, name: str) -> str:
    return "".join(told.get_all(name, []))


def unfit(package: str) -> list[str]:
    """The licences that it may need and that are not allowed: of those in ``OR`` one is enough."""
    told = metadata(package)
    classifiers = [each for each in told.get_all("Classifier", []) if each[:7] == "License"]
    names = [each.rpartition(":: ")[2] for each in classifiers if "::" in each]
    text = _said(told, "License-Expression") or " OR ".join(names) or _said(told, "License")
    needed = (
        [part.strip(" ()") for part in text.split(" AND ")] if "MPL 2.0" not in text else [text]
    )
    return [
        part
        for part in (each.strip(" ()") if each != text else text for each in needed)
        if ALLOWED_FOR.get(package) != part
        and not any(ALLOWED.fullmatch(each.strip(" ()")) for each in part.split(" OR "))
    ]


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _project() -> Mapping[str, Any]:
    project: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def declared() -> set[str]:
    project = _project()
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    texts = [*project["dependencies"], *extras]
    names = {re.split(r"[\[<>=!~ ]", text, maxsplit=1)[0].lower() for text in texts}
    return names - {"fetcher"}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    of_module = packages_distributions()
    modules = {
        module.partition(".")[0]
        for path in (ROOT / "fetcher").rglob("*.py")
        for module in _imported(path)
    }
    foreign = modules - sys.stdlib_module_names - {"fetcher", "fetcher_engine"}
    needed = {name.lower().replace("_", "-") for module in foreign for name in of_module[module]}
    # one namespace of many packages: the two that are declared bring the others
    needed = {name for name in needed if not name.startswith("opentelemetry-")} | (
        declared() & {name for name in needed if name.startswith("opentelemetry-")}
    )
    assert set(COME_WITH.values()) <= declared()
    assert needed - set(COME_WITH) - declared() == set()
    assert declared() - needed - {"fetcher-engine"} == set()
