"""What every test has: hypothesis profiles, the test servers, and the check for leftovers."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import structlog

from tests.scale import scaled

pytest_plugins = [
    "pytester",
    "tests.servers.fixtures",
    "tests.servers.leftovers",
    "tests.servers.mongo_databases",
]

# "too slow" is judged by the wall clock, which on a shared two-core machine judges the neighbours.
hypothesis.settings.register_profile(
    "fetcher",
    max_examples=scaled(25),
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fetcher")


@pytest.fixture(autouse=True, scope="session")
def _loggers_ask_each_time_how_to_log() -> Iterator[None]:
    """One that remembered how a former test set logs up would escape the next test's capture."""
    with pytest.MonkeyPatch.context() as patch:
        configure = structlog.configure

        def uncached(**settings: Any) -> None:
            configure(**settings | {"cache_logger_on_first_use": False})

        patch.setattr(structlog, "configure", uncached)
        yield


@pytest.fixture(autouse=True)
def _logs_are_set_up_as_before() -> Iterator[None]:
    """Commands and services that a test runs in this process set logs up for themselves."""
    yield
    structlog.reset_defaults()
