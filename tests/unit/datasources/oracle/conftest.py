"""Each test closes what its fake server opened."""

from collections.abc import Iterator

import pytest

from tests.unit.datasources.oracle.fake_driver import OPENED


@pytest.fixture(autouse=True)
def _servers_are_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()
