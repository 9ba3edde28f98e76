"""What a worker counts of its jobs."""

from datetime import timedelta

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry, generate_latest

from fetcher.actors.job_metrics import MOST_CODES, JobMetrics
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.domain.jobs import JobStatus
from fetcher.domain.tenants import Tenant
from tests.contract.records.builders import ALREADY_OVER, a_job
from tests.unit.actors.bench import Bench, FakeConsumer, FakeJobRun, now
from tests.unit.actors.test_reaper import a_reaper
from tests.unit.actors.worker import Worker, a_delivery_of

STAGE = "fetcher_job_stage_duration_seconds"
TAKEOVERS = "fetcher_lease_takeovers_total"


async def test_the_stages_around_a_run_are_timed(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job(created_at=now() - timedelta(seconds=40)))
    consumer.put(a_delivery_of(job))
    async with Worker(bench, FakeJobRun(), consumer, places=3).running():
        await trio.sleep(5)
    assert bench.counted(f"{STAGE}_sum", stage="wait") == pytest.approx(40, abs=1)
    for stage in ("wait", "claim", "settle"):
        assert bench.counted(f"{STAGE}_count", stage=stage) == 1


async def test_a_later_attempt_did_not_wait_for_its_first_claim(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job())
    claim = await bench.records.leases.claim(job.id, owner="other", lease_seconds=60)
    await bench.records.leases.release(claim.lease)  # type: ignore[union-attr] # it is claimed
    consumer.put(a_delivery_of(job))
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(5)
    assert bench.counted(f"{STAGE}_count", stage="claim") == 1
    assert bench.counted(f"{STAGE}_count", stage="wait") is None
    assert bench.counted(TAKEOVERS, outcome="claimed") == 0


async def test_a_claim_of_a_lease_that_ran_out_is_a_takeover(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job())
    await bench.records.leases.claim(job.id, owner="dead", lease_seconds=ALREADY_OVER)
    consumer.put(a_delivery_of(job))
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(5)
    assert await bench.status_of(job) is JobStatus.COMPLETED
    assert bench.counted(TAKEOVERS, outcome="claimed") == 1


async def test_what_the_reaper_took_back_counts_once(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    [job] = await bench.insert(a_job())
    await bench.records.leases.claim(job.id, owner="dead", lease_seconds=ALREADY_OVER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench).run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    consumer = FakeConsumer()
    consumer.put(a_delivery_of(job))
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(5)
    assert bench.counted(TAKEOVERS, outcome="requeued") == 1
    assert bench.counted(TAKEOVERS, outcome="claimed") == 0


async def test_failures_count_by_code(autojump_clock: trio.testing.MockClock, bench: Bench) -> None:
    consumer, job_run = FakeConsumer(), FakeJobRun()
    job_run.status = JobStatus.FAILED
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert stored.failure is not None
    assert bench.counted("fetcher_job_failures_total", code=stored.failure.code) == 1


def test_the_codes_of_failures_are_bounded(bench: Bench) -> None:
    for number in range(MOST_CODES + 5):
        bench.jobs.failed(f"code-{number}")
    bench.jobs.failed("code-0")
    assert bench.counted("fetcher_job_failures_total", code="code-0") == 2
    assert bench.counted("fetcher_job_failures_total", code="other") == 5


def test_rows_and_bytes_add_up(bench: Bench) -> None:
    bench.metrics.extracted(3, 100)
    bench.metrics.extracted(4, 11)
    assert bench.counted("fetcher_extraction_rows_total") == 7
    assert bench.counted("fetcher_extraction_bytes_total") == 111


# --- tenants ---------------------------------------------------------------------------------

FAMILIES = (
    "fetcher_jobs_total",
    "fetcher_job_duration_seconds_count",
    "fetcher_job_failures_total",
    "fetcher_jobs_in_flight",
    TAKEOVERS,
)


def samples(registry: CollectorRegistry) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Of these families: values other than 0 by labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {name: {} for name in FAMILIES}
    for family in registry.collect():
        for sample in family.samples:
            if sample.name in found and sample.value:
                found[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return found


def run_one(jobs: JobMetrics, code: str) -> None:
    jobs.started()
    jobs.ended("failed", 2.0)
    jobs.failed(code)
    jobs.took_over("claimed")
    jobs.started()


def test_without_the_label_tenants_are_told_in_one() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics(registry, places=1)
    acme, globex = metrics.jobs_of(Tenant("acme")), metrics.jobs_of(Tenant("globex"))
    run_one(acme, "connect")
    run_one(globex, "connect")
    acme.forget()
    assert samples(registry) == {
        "fetcher_jobs_total": {(("outcome", "failed"),): 2},
        "fetcher_job_duration_seconds_count": {(("outcome", "failed"),): 2},
        "fetcher_job_failures_total": {(("code", "connect"),): 2},
        "fetcher_jobs_in_flight": {(): 2},
        TAKEOVERS: {(("outcome", "claimed"),): 2},
    }
    assert b"acme" not in generate_latest(registry)


def test_with_the_label_each_tenant_is_told_apart_until_it_stops() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics(registry, places=1, tenant_label=True)
    acme, globex = metrics.jobs_of(Tenant("acme")), metrics.jobs_of(Tenant("globex"))
    assert registry.get_sample_value(TAKEOVERS, {"outcome": "failed", "tenant": "acme"}) == 0
    run_one(acme, "connect")
    run_one(globex, "rows")
    label = ("tenant", "globex")
    of_globex = {
        "fetcher_jobs_total": {(("outcome", "failed"), label): 1.0},
        "fetcher_job_duration_seconds_count": {(("outcome", "failed"), label): 1.0},
        "fetcher_job_failures_total": {(("code", "rows"), label): 1.0},
        "fetcher_jobs_in_flight": {(label,): 1.0},
        TAKEOVERS: {(("outcome", "claimed"), label): 1.0},
    }
    of_both = samples(registry)
    assert all(len(of_both[name]) == 2 for name in FAMILIES)
    acme.forget()
    assert samples(registry) == of_globex
    assert b"acme" not in generate_latest(registry)
    again = metrics.jobs_of(Tenant("acme"))
    again.started()
    assert registry.get_sample_value("fetcher_jobs_in_flight", {"tenant": "acme"}) == 1


def test_a_tenant_that_is_opened_anew_counts_on() -> None:
    """Its new opening is there before its old one has ended, and its first takeover is one more."""
    registry = CollectorRegistry()
    metrics = WorkerMetrics(registry, places=1, tenant_label=True)
    before = metrics.jobs_of(Tenant("acme"))
    run_one(before, "connect")
    before.ended("completed", 1.0)
    after = metrics.jobs_of(Tenant("acme"))
    before.forget()
    label = {"tenant": "acme"}
    assert registry.get_sample_value(TAKEOVERS, {"outcome": "failed", **label}) == 0
    assert registry.get_sample_value(TAKEOVERS, {"outcome": "claimed", **label}) == 1
    assert registry.get_sample_value("fetcher_jobs_in_flight", label) == 0
    after.failed("rows")
    after.forget()
    assert b"acme" not in generate_latest(registry)


def test_no_other_family_has_the_label() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics(registry, places=1, tenant_label=True)
    run_one(metrics.jobs_of(Tenant("acme")), "connect")
    metrics.extracted(1, 1)
    metrics.rejected.labels(reason="malformed").inc()
    metrics.expired.labels(what="job").inc()
    labelled = {
        family.name
        for family in registry.collect()
        for sample in family.samples
        if "tenant" in sample.labels
    }
    assert labelled == {
        "fetcher_jobs",
        "fetcher_job_duration_seconds",
        "fetcher_job_failures",
        "fetcher_jobs_in_flight",
        "fetcher_lease_takeovers",
    }
