import random

import pytest

from tests.unit.actors.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def longest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait that is random takes as long as it may."""
    monkeypatch.setattr(random, "uniform", lambda _shortest, longest: longest)
