"""What cannot work in the data folder refuses the start, by name and without a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fetcher.bootstrap.adapters import open_adapters
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import StartRefused
from fetcher.settings import Role, Settings


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("events.jsonl", Path.mkdir),
        ("dead-letters.jsonl", Path.mkdir),
        ("objects", Path.touch),
        ("sources", Path.touch),
        ("spool", Path.touch),
        ("fetcher.db", Path.mkdir),
    ],
)
async def test_something_else_under_a_name_of_ours(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / name)
    with pytest.raises(StartRefused) as refused:
        async with open_adapters(Settings(fetcher_data_dir=tmp_path), Role.ALL):
            pytest.fail("it started")
    [problem] = refused.value.problems
    assert problem.startswith("FETCHER_DATA_DIR: ")
    assert name in problem


async def test_the_folder_is_free_again_after_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "objects").touch()
    with pytest.raises(StartRefused):
        async with open_adapters(Settings(fetcher_data_dir=tmp_path), Role.ALL):
            pytest.fail("it started")
    (tmp_path / "objects").unlink()
    async with open_adapters(Settings(fetcher_data_dir=tmp_path), Role.ALL) as adapters:
        assert [probe.name for probe in adapters.probes] == [
            "record_store",
            "queue",
            "object_store",
        ]


@pytest.mark.parametrize(("bucket", "has_store"), [("", False), ("results", True)])
async def test_a_manager_opens_the_store_that_is_set_and_is_ready_without_it(
    tmp_path: Path, bucket: str, has_store: bool
) -> None:
    settings = Settings(fetcher_data_dir=tmp_path, object_storage_bucket=bucket)
    async with open_asyncio(pytest.fail), open_adapters(settings, Role.MANAGER) as adapters:
        assert (adapters.objects is not None) is has_store
        assert {"s3", "object_store"}.isdisjoint(probe.name for probe in adapters.probes)
