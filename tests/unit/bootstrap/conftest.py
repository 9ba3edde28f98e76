"""The data folder of the tests of backups, made once, and a certificate authority."""

import shutil
from pathlib import Path

import pytest
import trio

from fetcher.domain.jobs import Job
from tests.unit.bootstrap.backups import make_folder
from tests.unit.settings.conftest import authority_pem

__all__ = ["authority_pem"]


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Job]]:
    path = tmp_path_factory.mktemp("made") / "data"
    return path, trio.run(make_folder, path)


@pytest.fixture
def jobs(tmp_path: Path, made_folder: tuple[Path, list[Job]]) -> list[Job]:
    """What lies in the folder ``data``."""
    folder, made = made_folder
    shutil.copytree(folder, tmp_path / "data")
    return made
