"""From settings to an exit code, with nothing but a data folder."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetcher.actors.supervisor import Supervisor
from fetcher.bootstrap.service import EXIT_OK, serve
from fetcher.settings import Role, Settings


@pytest.fixture
def collected_again() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("collected_again")
async def test_what_the_start_made_is_left_out_of_collections_before_the_actors_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[int] = []

    async def run(_: Supervisor) -> None:
        frozen.append(gc.get_freeze_count())

    monkeypatch.setattr(Supervisor, "run", run)
    assert await serve(Settings(fetcher_data_dir=tmp_path), Role.ALL) == EXIT_OK
    [count] = frozen
    assert count > 50_000, "the modules alone are more"
