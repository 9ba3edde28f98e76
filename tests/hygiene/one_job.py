"""A process of the embedded kind, in this process, that has one job to do."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.supervisor import Actor
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.roster import Roster
from fetcher.commands.cancel_job import CancelJob, JobEnded
from fetcher.consumer import derive_keys, open_result, verify_event
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.settings import Role, Settings
from tests.hygiene.interruption import Interruption, watch_from_here
from tests.hygiene.result_places import ResultPlace
from tests.servers.waiting import eventually
from tests.unit.commands.job_bench import NOW

WORKERS: Final = ("dispatcher", "outbox_relay", "intake", "lease_keeper", "extractor-1")
"""Those who have to do with a job."""
MENDERS: Final = ("reaper", "outbox_repairer")
"""They work on what others left; their rounds are not counted."""
END_SECONDS: Final = 20.0

Interrupt: TypeAlias = Callable[["Running"], None]


@dataclass(frozen=True)
class Running:
    """What an interruption may touch."""

    lifecycle: Lifecycle
    cut: trio.CancelScope
    asked: trio.Event


def cut(running: Running) -> None:
    """Everybody is cancelled, as when the process's nursery ends."""
    running.cut.cancel()


def release(running: Running) -> None:
    """The process goes down and waits for no job."""
    running.lifecycle.drain()
    running.lifecycle.closing.set()
    running.lifecycle.releasing.set()


def ask_to_stop(running: Running) -> None:
    """A caller cancels the job."""
    running.asked.set()


@dataclass(frozen=True)
class JobProcess:
    """Over one data folder, and a bucket where the results lie in one."""

    settings: Settings
    job_id: JobId
    results: ResultPlace

    async def run(self, adapters: Adapters, interrupt: Interrupt, *, at: int) -> Interruption:
        """Until the job has ended and its event is delivered, or was interrupted before."""
        lifecycle = Lifecycle()
        roster = Roster(self.settings, Role.ALL, adapters, lifecycle)
        actors = {spec.actor.name: spec.actor for spec in roster.work()}
        running = Running(lifecycle, trio.CancelScope(), trio.Event())
        interruption = Interruption(at, partial(interrupt, running))
        ended = {name: trio.Event() for name in WORKERS}
        async with trio.open_nursery() as nursery:
            for name in MENDERS:
                nursery.start_soon(_run_one, actors[name], trio.Event())
            nursery.start_soon(self._stop_when_asked, adapters, running)
            nursery.start_soon(self._go_down, adapters, running, ended)
            trio.lowlevel.add_instrument(interruption)
            try:
                with running.cut:
                    watch_from_here()
                    async with trio.open_nursery() as watched:
                        for name in WORKERS:
                            watched.start_soon(_run_one, actors[name], ended[name])
                        await ended["outbox_relay"].wait()
                        watched.cancel_scope.cancel()
            finally:
                trio.lowlevel.remove_instrument(interruption)
            nursery.cancel_scope.cancel()
        return interruption

    async def _stop_when_asked(self, adapters: Adapters, running: Running) -> None:
        await running.asked.wait()
        cancel = CancelJob(
            jobs=adapters.records.jobs,
            cleanup=adapters.records.cleanup,
            hint=lambda _: None,
            now=lambda: NOW,
            key_prefix="",
        )
        try:
            await cancel(self.job_id)
        except JobEnded:
            return

    async def _go_down(
        self, adapters: Adapters, running: Running, ended: dict[str, trio.Event]
    ) -> None:
        """In the order of the supervisor, once there is nothing to do or somebody says so."""

        async def may_end() -> bool:
            return running.lifecycle.releasing.is_set() or await self._is_done(adapters)

        await eventually(may_end, deadline_seconds=END_SECONDS, what="the job is done")
        release(running)
        with trio.fail_after(END_SECONDS):
            await ended["intake"].wait()
            await ended["extractor-1"].wait()
            running.lifecycle.last_round.set()

    async def _is_done(self, adapters: Adapters) -> bool:
        job = await self.job(adapters)
        return not job.status.is_active and not job.event_pending

    async def job(self, adapters: Adapters) -> Job:
        job = await adapters.records.jobs.get(self.job_id)
        assert job is not None
        return job

    @property
    def folder(self) -> Path:
        return self.settings.fetcher_data_dir

    def events(self) -> list[dict[str, Any]]:
        """What the event log tells of it, verified."""
        keys = derive_keys((self.folder / "master.key").read_text())
        lines = map(json.loads, (self.folder / "events.jsonl").read_text().splitlines())
        told = []
        for line in lines:
            body = line["body"].encode()
            verify_event(
                line["headers"], body, line["exchange"], line["routingKey"], key=keys.external_hmac
            )
            told.append(json.loads(body))
        return told

    def document(self, event: dict[str, Any]) -> Any:
        keys = derive_keys((self.folder / "master.key").read_text())
        result = event["result"]
        with open_result(
            self.results.read(result["path"]),
            storage_key=keys.storage,
            hmac_key=keys.external_hmac,
            expected_hmac=result["hmac"],
            expected_size=result["sizeBytes"],
        ) as document:
            return json.loads(document.read())


async def _run_one(actor: Actor, ended: trio.Event) -> None:
    try:
        await actor.run(task_status=trio.TASK_STATUS_IGNORED)
    finally:
        ended.set()
