"""Every spool, behind the same fixture."""

from pathlib import Path

import pytest

from fetcher.adapters.local.spool import FolderSpool
from fetcher_engine import Spool
from fetcher_engine.memory import MemorySpool


@pytest.fixture(params=["folder", "memory"])
def spool_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spool(spool_kind: str, tmp_path: Path) -> Spool:
    return FolderSpool(tmp_path) if spool_kind == "folder" else MemorySpool()
