"""Fixtures: the loops, and one tenant."""

from collections.abc import Iterator

import pytest

from fetcher_engine import TenantContext

from .loops import AnyLoop, AsyncioLoop, RealLoop, TrampolineLoop, TrioLoop, running_on


@pytest.fixture(
    params=[TrampolineLoop, AsyncioLoop, TrioLoop], ids=["trampoline", "asyncio", "trio"]
)
def any_loop(request: pytest.FixtureRequest) -> Iterator[AnyLoop]:
    """For what needs no waiting: the whole Engine runs without a loop too."""
    any_: AnyLoop = request.param()
    with running_on(any_):
        yield any_


@pytest.fixture(params=[AsyncioLoop, TrioLoop], ids=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> Iterator[RealLoop]:
    """For what waits, races or is cancelled."""
    real: RealLoop = request.param()
    with running_on(real):
        yield real


@pytest.fixture
def tenant() -> TenantContext:
    return TenantContext.new("acme")
