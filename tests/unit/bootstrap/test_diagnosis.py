"""What a diagnosis finds of many things is told of each, whatever another of them does."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from fetcher.adapters.sqlite.records import open_sqlite_records
from fetcher.bootstrap import diagnosis
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.diagnosis import diagnosed_parts
from fetcher.commands.diagnosis import PartResult, look_at
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import Claimed
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.settings import Role, Settings
from tests.contract.records.builders import ago, failed, inserted

CANARY = "canary-of-a-link"
Opened = AbstractAsyncContextManager[Probe]


async def up() -> ProbeResult:
    await trio.lowlevel.checkpoint()
    return ProbeResult(status=ProbeStatus.UP)


def probe(name: str) -> Probe:
    return Probe(name=name, timeout_seconds=2.0, check=up)


@asynccontextmanager
async def good() -> AsyncIterator[Probe]:
    yield probe("good")


@asynccontextmanager
async def hangs_while_opened() -> AsyncIterator[Probe]:
    await trio.Event().wait()
    yield probe("never")


@asynccontextmanager
async def hangs_while_closed() -> AsyncIterator[Probe]:
    yield probe("stuck")
    with trio.CancelScope(shield=True):
        await trio.sleep(60)


@asynccontextmanager
async def fails(*, opened: Exception | None = None, closed: Exception) -> AsyncIterator[Probe]:
    if opened is not None:
        raise opened
    yield probe("torn")
    raise closed


def away() -> Opened:
    error = PortUnavailable("not there")
    return fails(opened=error, closed=error)


def crashes_while_opened() -> Opened:
    error = RuntimeError(CANARY)
    return fails(opened=error, closed=error)


def crashes_while_closed() -> Opened:
    return fails(closed=OSError(CANARY))


async def looked(name: str, settings: Settings) -> PartResult:
    target = CommandTarget(settings=settings)
    [part] = [each for each in diagnosed_parts(target, Role.ALL) if each.name == name]
    async with trio.open_nursery() as nursery:
        [result] = await look_at([part], nursery)
        nursery.cancel_scope.cancel()
    return result


@pytest.mark.parametrize(
    ("other", "name", "told"),
    [
        (hangs_while_opened, "other", {"status": "unasked", "error": "timeout"}),
        (away, "other", {"status": "unasked", "error": "not there"}),
        (crashes_while_opened, "other", {"status": "unasked", "error": "crash"}),
        (hangs_while_closed, "stuck", {"status": "up"}),
        (crashes_while_closed, "torn", {"status": "up"}),
    ],
)
async def test_a_dependency_that_answers_is_told_whatever_another_does(
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    other: Callable[[], Opened],
    name: str,
    told: Mapping[str, str],
) -> None:
    opened: Mapping[str, Opened] = {"other": other(), "good": good()}
    monkeypatch.setattr(diagnosis, "_probes", lambda *_: opened)
    result = await looked("probes", Settings())
    dependencies: Any = result.facts["dependencies"]
    assert set(dependencies) == {name, "good"}
    assert dependencies["good"]["status"] == "up"
    assert dependencies[name].items() >= told.items()
    assert CANARY not in str(dependencies)


async def test_a_server_that_answers_is_told_though_another_hangs(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers(_: Settings) -> str:
        await trio.lowlevel.checkpoint()
        return "4.1.2"

    async def hangs(_: Settings) -> str:
        await trio.Event().wait()
        return ""

    monkeypatch.setattr(diagnosis, "_rabbitmq_version", answers)
    monkeypatch.setattr(diagnosis, "_mongodb_version", hangs)
    settings = Settings.model_construct(record_store="mongodb", queue_backend="rabbitmq")
    result = await looked("servers", settings)
    assert result.failure == {"code": "timeout"}
    assert result.facts == {"versions": {"rabbitmq": "4.1.2"}, "unknown": {}}


async def test_a_disk_is_told_though_another_cannot_be_asked(tmp_path: Path) -> None:
    result = await looked(
        "disks",
        Settings(fetcher_data_dir=tmp_path, spool_dir=str(tmp_path / "away")),
    )
    assert result.failure is not None
    assert (result.failure["code"], "away" in str(result.failure["text"])) == ("unavailable", True)
    folders: Any = result.facts["folders"]
    assert set(folders) == {"data"}


@contextmanager
def hung_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    answers = threading.Event()
    monkeypatch.setattr(Path, "exists", lambda _: answers.wait())
    try:
        yield
    finally:
        answers.set()


async def test_a_file_system_that_hangs_holds_up_nobody(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with hung_disk(monkeypatch):
        began_at = trio.current_time()
        with trio.move_on_after(5) as scope:
            target = CommandTarget(settings=Settings(fetcher_data_dir=tmp_path))
            await diagnosis.store(target, Role.ALL)
        assert scope.cancelled_caught
        assert trio.current_time() == began_at + 5


async def test_the_failures_are_those_that_failed_last(tmp_path: Path) -> None:
    """Not those that were created last."""
    shown = diagnosis.FAILURES_SHOWN
    settings = Settings(fetcher_data_dir=tmp_path)
    async with open_sqlite_records(tmp_path / "fetcher.db") as store:
        jobs = [await inserted(store, created_at=ago(1000 - n)) for n in range(shown + 2)]
        oldest_last = [*jobs[1:], jobs[0]]
        for job in oldest_last:
            claim = await store.leases.claim(job.id, owner="w", lease_seconds=60)
            assert isinstance(claim, Claimed)
            await store.leases.finish(claim.lease, failed())
        result = await looked("failures", settings)
    failures: Any = result.facts["failures"]
    assert [each["id"] for each in failures] == [
        str(job.id) for job in reversed(oldest_last[-shown:])
    ]
