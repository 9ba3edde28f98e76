"""What tests of several sources share."""

import pytest
from pymongo import common


@pytest.fixture
def brief_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """pymongo's threads look twice a second whether they are wanted; here every 20 ms, since each
    test waits for their end."""
    monkeypatch.setattr(common, "MIN_HEARTBEAT_INTERVAL", 0.02)
