"""From settings to an exit code, with nothing but a data folder."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import trio
from pydantic import SecretStr

from fetcher.actors.health import Health
from fetcher.actors.supervisor import Supervisor
from fetcher.bootstrap.service import EXIT_OK, run_service, serve
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


@pytest.mark.usefixtures("collected_again")
async def test_a_signal_drains_while_the_health_actor_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It crashes at once, and is not there when the signal comes."""
    crashes: list[str] = []

    async def crash(_: Health, *, task_status: object) -> None:
        if not crashes:
            # once: when it is started again, a second signal would end this process
            os.kill(os.getpid(), signal.SIGTERM)
        crashes.append("canary")
        raise RuntimeError("canary")

    monkeypatch.setattr(Health, "run", crash)
    settings = Settings(fetcher_data_dir=tmp_path, readyz_drain_delay_sec=0.01)
    with trio.fail_after(60):
        assert await serve(settings, Role.WORKER) == EXIT_OK


@pytest.mark.usefixtures("collected_again")
def test_the_services_log_masks_the_collectors_token_and_the_key_that_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(_: Supervisor) -> None:
        await trio.lowlevel.checkpoint()
        master = (tmp_path / "master.key").read_text(encoding="ascii").strip()
        structlog.get_logger().warning("said", texts=["canary/token", "canary%2Ftoken", master])

    monkeypatch.setattr(Supervisor, "run", run)
    headers = SecretStr("authorization=Bearer canary/token,team=blue")
    settings = Settings(fetcher_data_dir=tmp_path, otel_exporter_otlp_headers=headers)
    assert run_service(settings, Role.ALL) == EXIT_OK
    told = capsys.readouterr()
    assert '"texts":["***","***","***"]' in told.out
    assert "canary" not in told.out + told.err
