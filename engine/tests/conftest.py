"""Fixtures: the loops, and one tenant."""

from collections.abc import Iterator

import pytest

from fetcher_engine import TenantContext

from .loops import (
    AnyLoop,
    RealLoop,
    TrampolineLoop,
    current_loop,
    current_real_loop,
    every_loop,
    running_on,
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "loops(*classes): run once on each of these loops")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A round for each loop of the nearest mark; ``loop`` and ``any_loop`` ask for rounds too."""
    mark = metafunc.definition.get_closest_marker("loops")
    if mark is None and {"loop", "any_loop"} & set(metafunc.fixturenames):
        mark = every_loop.mark
    if mark is None:
        return
    wants_real = "loop" in metafunc.fixturenames
    loops = [each for each in mark.args if not (wants_real and each is TrampolineLoop)]
    ids = [each.__name__.removesuffix("Loop").lower() for each in loops]
    metafunc.parametrize("loop_of_the_round", loops, ids=ids, indirect=True)


@pytest.fixture(autouse=True)
def loop_of_the_round(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that names no loops has no round."""
    if not hasattr(request, "param"):
        yield
        return
    with running_on(request.param()):
        yield


@pytest.fixture
def any_loop(loop_of_the_round: None) -> AnyLoop:
    """For what needs no waiting: the whole Engine runs without a loop too."""
    return current_loop()


@pytest.fixture
def loop(loop_of_the_round: None) -> RealLoop:
    """For what waits, races or is cancelled."""
    return current_real_loop()


@pytest.fixture
def tenant() -> TenantContext:
    return TenantContext.new("acme")
