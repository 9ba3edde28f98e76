import pytest

from tests.unit.actors.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
