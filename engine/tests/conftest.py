"""Fixtures: the loops, and one tenant."""

import pytest

from fetcher_engine import TenantContext

from .loops import AsyncioLoop, TrampolineLoop, TrioLoop


@pytest.fixture(
    params=[TrampolineLoop, AsyncioLoop, TrioLoop], ids=["trampoline", "asyncio", "trio"]
)
def any_loop(request: pytest.FixtureRequest) -> TrampolineLoop | AsyncioLoop | TrioLoop:
    """For what needs no waiting: the whole Engine runs without a loop too."""
    loop: TrampolineLoop | AsyncioLoop | TrioLoop = request.param()
    return loop


@pytest.fixture(params=[AsyncioLoop, TrioLoop], ids=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> AsyncioLoop | TrioLoop:
    """For what waits, races or is cancelled."""
    real: AsyncioLoop | TrioLoop = request.param()
    return real


@pytest.fixture
def tenant() -> TenantContext:
    return TenantContext.new("acme")
