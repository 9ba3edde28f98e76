"""What many tenants cost one worker and one manager, and what they do to each other.

``python -m benchmarks.tenants [--tenants N] [--settle-seconds S] [--idle-seconds S] [--jobs N]
[--queued N]``. Servers of its own (:mod:`benchmarks.tenants_stage`) but for S3 and PostgreSQL.
``make bench`` runs fewer tenants for a shorter time (:data:`SHORT`); the figures of docs/scale.md
are those of the defaults.

``tenants.worker``: seconds from the command until each tenant's consumer is at its queue; once all
have been idle for a while, memory for each tenant beyond that of the same process with one, and the
share of a core that all of them take. First where none can share a client of the record store, then
with all on one address of it and one user. ``tenants.manager``: the same after a request of each,
what is left when all were closed since nobody used them, and once all are open again.
``tenants.jobs``: jobs a second of 20 tenants and of one in the same worker.
``tenants.quiet_job``: one job of a tenant while another one has thousands queued, beside the same
with an empty queue. ``tenants.broker_restart``: how long until all consumers are back, counted from
the first connection that the broker takes again; connections in the fullest second; refused ones;
and how late the worker's loop was (nothing later than this bound of its histogram).
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.cpu_time import cpu_seconds, listener, rss_kib
from benchmarks.tenants_load import (
    first_request_seconds,
    forget_jobs,
    job_of,
    make_jobs,
    one_at_a_time,
    run_through,
    scraped,
)
from benchmarks.tenants_logs import (
    broker_connections,
    buckets,
    consumers_since,
    median_and_worst,
    value,
    worst_bucket,
)
from benchmarks.tenants_stage import Stage, stage
from fetcher.adapters.mongo.document_fields import Document
from tests.e2e.broker import Message
from tests.e2e.tenancy import TenantApi, TenantPlace
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

TENANTS: Final = 200
TENANTS_WITH_JOBS: Final = 20
WARM_UP: Final = 40
QUIET_JOBS: Final = 20
SHORT: Final = (
    *("--tenants", "20", "--settle-seconds", "6", "--idle-seconds", "4"),
    *("--jobs", "80", "--queued", "200"),
)
TARGET_KIB: Final = 1024
TARGET_CORE: Final = 0.15
START_SECONDS: Final = 300.0
BACK_SECONDS: Final = 300.0
_LATENESS: Final = "fetcher_heartbeat_lateness_seconds"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    parser.add_argument("--settle-seconds", type=float, default=60.0)
    parser.add_argument("--idle-seconds", type=float, default=30.0)
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--queued", type=int, default=2000)
    options = parser.parse_args(arguments)
    with stage(options.tenants) as on:
        bench = _Bench(on, options.idle_seconds, options.settle_seconds)
        bench.prepare()
        bench.measure_own_clients()
        with bench.measured_worker() as worker:
            bench.measure_manager()
            bench.measure_jobs(worker, options.jobs)
            bench.measure_quiet_jobs(options.queued)
            bench.measure_restart(worker)


@dataclass(frozen=True, slots=True)
class _Worker:
    process: FetcherProcess
    api: TenantApi


class _Bench:
    def __init__(self, on: Stage, idle_seconds: float, settle_seconds: float) -> None:
        self._on = on
        self._count = len(on.places)
        self._idle_seconds = idle_seconds
        self._settle_seconds = settle_seconds
        self._of_one_kib: dict[str, int] = {}
        """Memory of a process with one tenant, by role: all code that tenants need is loaded."""
        self._jobs: dict[TenantPlace, Document] = {}

    def prepare(self) -> None:
        self._on.tell(first=1)
        with self._on.tenancy.process("worker") as (process, _):
            self._consume(process, 0.0, 1, START_SECONDS)
            time.sleep(self._idle_seconds)
            self._of_one_kib["worker"] = rss_kib(process.pid)
        with self._on.tenancy.process("manager") as (process, api):
            first_request_seconds(api, self._on.places[0])
            time.sleep(self._idle_seconds)
            self._of_one_kib["manager"] = rss_kib(process.pid)
        self._on.tell()
        with self._on.tenancy.process("manager") as (_, api):
            for place in self._on.places[:TENANTS_WITH_JOBS]:
                self._jobs[place] = job_of(self._on, api, place)

    def measure_own_clients(self) -> None:
        self._on.tell(own_clients=True)
        with self._worker("own"):
            pass

    @contextmanager
    def measured_worker(self) -> Iterator[_Worker]:
        """It goes on for what is measured next."""
        self._on.tell()
        with self._worker("shared") as worker:
            yield worker

    @contextmanager
    def _worker(self, clients: str) -> Iterator[_Worker]:
        began_at = time.time()
        with self._on.tenancy.process("worker") as (process, api):
            all_at = self._all_consume(process, began_at, START_SECONDS)
            time.sleep(self._settle_seconds)
            core = self._core_when_idle(process.pid)
            report(
                "worker",
                tenants=self._count,
                record_store_clients=clients,
                start_seconds=round(all_at - began_at, 1),
                **self._memory("worker", process.pid),
                idle_core=core,
                target_core=TARGET_CORE,
            )
            yield _Worker(process, api)

    def measure_manager(self) -> None:
        """Each tenant is asked once, all stay open for the measurement, then nobody asks."""
        idle_timeout = int(2 * self._idle_seconds)
        changes = {"MULTI_TENANT_IDLE_TIMEOUT_SEC": str(idle_timeout)}
        with self._on.tenancy.process("manager", **changes) as (process, api):
            firsts = [first_request_seconds(api, place) for place in self._on.places]
            asked_at = time.monotonic()
            core = self._core_when_idle(process.pid)
            memory = self._memory("manager", process.pid)
            active = value(scraped(api), "fetcher_tenants_active")
            eventually_sync(
                lambda: value(scraped(api), "fetcher_tenants_active") == 0,
                deadline_seconds=4 * idle_timeout,
                what="all tenants of the manager are closed",
            )
            closed_after, closed_kib = time.monotonic() - asked_at, rss_kib(process.pid)
            for place in self._on.places:
                first_request_seconds(api, place)
            middle, worst = median_and_worst(firsts)
            report(
                "manager",
                tenants=self._count,
                first_request_ms=round(1000 * middle, 1),
                first_request_worst_ms=round(1000 * worst, 1),
                open=int(active),
                **memory,
                idle_core=core,
                target_core=TARGET_CORE,
                idle_timeout_seconds=idle_timeout,
                closed_after_seconds=round(closed_after, 1),
                closed_rss_mib=mib(closed_kib),
                opened_again_rss_mib=mib(rss_kib(process.pid)),
            )

    def measure_jobs(self, worker: _Worker, jobs: int) -> None:
        share = jobs // len(self._jobs)
        alone = next(iter(self._jobs))
        # What the first jobs open, the others find open.
        for few in (dict.fromkeys(self._jobs, 2), {alone: WARM_UP}):
            run_through({place: self._made(place, count) for place, count in few.items()})
        ended = share * len(self._jobs)
        seconds, used = self._timed(worker, dict.fromkeys(self._jobs, share))
        seconds_alone, used_alone = self._timed(worker, {alone: ended})
        report(
            "jobs",
            tenants=len(self._jobs),
            jobs=ended,
            jobs_per_second=round(ended / seconds, 1),
            jobs_per_second_of_one_tenant=round(ended / seconds_alone, 1),
            ratio_to_one=round(seconds_alone / seconds, 2),
            cpu_ms_per_job=used,
            cpu_ms_per_job_of_one_tenant=used_alone,
        )

    def _timed(
        self, worker: _Worker, jobs: Mapping[TenantPlace, int]
    ) -> tuple[float, Mapping[str, float]]:
        """Seconds, and milliseconds of CPU a job of each process."""
        load = {place: self._made(place, count) for place, count in jobs.items()}
        pids = {
            "worker": worker.process.pid,
            "mongodb": listener(self._on.store.port),
            "rabbitmq": listener(self._on.broker.port),
        }
        before = {name: cpu_seconds(pid) for name, pid in pids.items() if pid is not None}
        seconds = run_through(load)
        total = sum(jobs.values())
        return seconds, {
            name: round(1000 * (cpu_seconds(pid) - before[name]) / total, 1)
            for name, pid in pids.items()
            if name in before and pid is not None
        }

    def measure_quiet_jobs(self, queued: int) -> None:
        quiet, *_, busy = self._jobs
        usual = one_at_a_time(quiet, self._made(quiet, QUIET_JOBS), busy, [])
        work = self._made(busy, queued)
        beside = one_at_a_time(quiet, self._made(quiet, QUIET_JOBS), busy, work)
        forget_jobs(self._on, busy)
        middle, worst = median_and_worst(beside.seconds)
        usual_middle, usual_worst = median_and_worst(usual.seconds)
        report(
            "quiet_job",
            queued_by_another=queued,
            still_queued=beside.left,
            median_ms=round(1000 * middle),
            worst_ms=round(1000 * worst),
            median_ms_alone=round(1000 * usual_middle),
            worst_ms_alone=round(1000 * usual_worst),
            ratio_to_alone=round(middle / usual_middle, 1),
        )

    def measure_restart(self, worker: _Worker) -> None:
        broker = self._on.broker
        written = broker.log_path.stat().st_size
        before = scraped(worker.api)
        stopped_at = time.time()
        broker.stop()
        broker.start()
        all_at = self._all_consume(worker.process, stopped_at, BACK_SECONDS)
        after = scraped(worker.api)
        with broker.log_path.open("rb") as log:
            log.seek(written)
            seen = broker_connections(log.read().decode(errors="replace"))
        assert seen.first_at is not None
        report(
            "broker_restart",
            tenants=self._count,
            away_seconds=round(seen.first_at - stopped_at, 1),
            back_after_seconds=round(all_at - seen.first_at, 1),
            connections=seen.opened,
            most_a_second=seen.most_a_second,
            refused=seen.refused,
            loop_late_below_seconds=worst_bucket(
                buckets(before, _LATENESS), buckets(after, _LATENESS)
            ),
        )

    def _made(self, place: TenantPlace, count: int) -> list[Message]:
        return make_jobs(self._on, place, self._jobs[place], count)

    def _all_consume(self, worker: FetcherProcess, since: float, deadline_seconds: float) -> float:
        return self._consume(worker, since, self._count, deadline_seconds)

    def _consume(
        self, worker: FetcherProcess, since: float, tenants: int, deadline_seconds: float
    ) -> float:
        """When the last of so many tenants' consumers was at its queue."""
        seen: dict[str, float] = {}

        def all_do(process: FetcherProcess) -> bool:
            seen.update(consumers_since(process.log(), since))
            return len(seen) == tenants

        worker.wait_until(all_do, deadline_seconds=deadline_seconds)
        return max(seen.values())

    def _core_when_idle(self, pid: int) -> float:
        before, began_at = cpu_seconds(pid), time.monotonic()
        time.sleep(self._idle_seconds)
        return round((cpu_seconds(pid) - before) / (time.monotonic() - began_at), 3)

    def _memory(self, role: str, pid: int) -> Mapping[str, float]:
        rss, of_one = rss_kib(pid), self._of_one_kib[role]
        return {
            "rss_mib": mib(rss),
            "rss_mib_of_one": mib(of_one),
            "kib_per_tenant": round((rss - of_one) / max(1, self._count - 1)),
            "target_kib": TARGET_KIB,
        }


def report(figure: str, **values: object) -> None:
    print(json.dumps({"figure": f"tenants.{figure}", **values}), flush=True)


def mib(kib: int) -> float:
    return round(kib / 1024, 1)


if __name__ == "__main__":
    main()
