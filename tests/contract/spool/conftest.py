"""Every spool, behind the same fixture."""

from pathlib import Path

import pytest

from fetcher.adapters.local.spool import FolderSpool
from fetcher_engine import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return FolderSpool(tmp_path)
