"""Where the spool lies, and what a folder that cannot be used means."""

import tempfile
from pathlib import Path

import pytest
import structlog.testing

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.bootstrap.stores import spool_folder, usable_spool
from fetcher.domain.errors import StartRefused
from fetcher.settings import Settings


def test_the_folder_that_is_named_comes_before_ours_and_ours_before_the_systems(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path)
    assert spool_folder("/named", folder) == Path("/named")
    assert spool_folder("", folder) == tmp_path / "spool"
    assert spool_folder("", None) == Path(tempfile.gettempdir())


async def test_the_data_folder_gets_one_for_its_owner_only(tmp_path: Path) -> None:
    assert await usable_spool(Settings(), DataFolder(tmp_path)) is not None
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700


async def test_off_is_none(tmp_path: Path) -> None:
    settings = Settings(spool_dir="off")
    assert await usable_spool(settings, DataFolder(tmp_path)) is None
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize("with_data_folder", [False, True])
async def test_a_named_folder_that_cannot_be_used_refuses_the_start(
    tmp_path: Path, with_data_folder: bool
) -> None:
    settings = Settings(spool_dir=str(tmp_path / "gone"))
    with pytest.raises(StartRefused) as refused:
        await usable_spool(settings, DataFolder(tmp_path) if with_data_folder else None)
    assert refused.value.problems == ("SPOOL_DIR: the spool failed: No such file or directory",)


async def test_a_temporary_folder_that_cannot_be_used_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "gone"))
    with structlog.testing.capture_logs() as records:
        assert await usable_spool(Settings(), None) is None
    assert records[-1] == {
        "event": "no_spool",
        "log_level": "warning",
        "env_var": "SPOOL_DIR",
        "why": "the spool failed: No such file or directory",
    }


async def test_a_system_without_a_temporary_folder_is_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with structlog.testing.capture_logs() as records:
        assert await usable_spool(Settings(), None) is None
    assert [record["why"] for record in records] == ["there is no temporary folder"]
