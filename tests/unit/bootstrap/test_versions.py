"""What a diagnosis says of the program, also where it is not installed as a package."""

import importlib.metadata
import json
import sqlite3

import pytest

from fetcher.bootstrap.versions import versions
from fetcher.settings import Settings


def test_it_tells_fetcher_its_libraries_and_what_runs_them() -> None:
    told = versions(Settings(version="1.2.3"))
    assert told["deployed"] == "1.2.3"
    assert told["fetcher"] == importlib.metadata.version("fetcher")
    assert told["sqlite"] == sqlite3.sqlite_version
    libraries = told["libraries"]
    assert isinstance(libraries, dict)
    assert {"trio", "aiormq", "pymongo", "fetcher-engine"} <= set(libraries)
    assert "fetcher" not in libraries
    json.dumps(told)


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    told = versions(Settings())
    assert told["fetcher"] is None
    assert set(told["libraries"].values()) == {None}  # type: ignore[attr-defined] # a dict, as above
    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert versions(Settings())["libraries"] == {}
