"""What the product ships with: every pin with its hashes, under a licence that fits Apache-2.0."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parents[2] / "requirements"
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
