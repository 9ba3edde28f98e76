"""The loop that the Engine's tests ask for, with this host's port on it."""

from typing import Any

import pytest

from fetcher.concurrency import TrioConcurrency

from .engine_suite import engine_module


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "loops(*classes): of the Engine's suite; here is one alone")


@pytest.fixture
def loop() -> Any:
    loop = engine_module("loops").TrioLoop()
    loop.concurrency = TrioConcurrency()
    return loop
