"""What a process with tenants has once, whoever they are."""

import os
from pathlib import Path

import pytest
import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.bootstrap.tenancy import process
from fetcher.bootstrap.tenancy.roster import TenantsRoster
from fetcher.bridge import open_asyncio
from fetcher.ports import UNTRACED
from fetcher.settings import Role, Settings
from tests.servers.waiting import eventually
from tests.unit.bootstrap.test_metrics_docs import WITH_TENANTS, heard


def settings_of(folder: Path) -> Settings:
    texts = {**WITH_TENANTS, "spool_dir": str(folder)}
    return Settings(fetcher_data_dir=folder, **texts)  # type: ignore[arg-type] # texts only


def spools_disk(roster: TenantsRoster) -> float | None:
    return roster._registry.get_sample_value("fetcher_disk_size_bytes", {"place": "spool"})


async def test_the_disk_of_the_spool_is_looked_at_once_for_all_tenants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_refuse_unless_heard", heard)
    opened = process.open_tenants_roster(settings_of(tmp_path), Role.WORKER, UNTRACED, Lifecycle())
    async with open_asyncio(pytest.fail), opened as roster, trio.open_nursery() as nursery:
        actors = {each.actor.name: each.actor for each in roster.work()}
        await nursery.start(actors["sampler"].run)
        seen = await eventually(lambda: spools_disk(roster), deadline_seconds=5)
        nursery.cancel_scope.cancel()
    disk = os.statvfs(tmp_path)
    assert seen == disk.f_blocks * disk.f_frsize


async def test_a_manager_has_no_disk_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_refuse_unless_heard", heard)
    opened = process.open_tenants_roster(settings_of(tmp_path), Role.MANAGER, UNTRACED, Lifecycle())
    async with open_asyncio(pytest.fail), opened as roster:
        assert [each.actor.name for each in roster.work()] == ["tenants"]
