"""What a worker's actors count beside those of every role."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from fetcher.actors.job_metrics import JobFamilies, JobMetrics
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.sampled_metrics import DeadLetterMetrics
from fetcher.domain.job_stages import JobStage
from fetcher.domain.tenants import Tenant


class WorkerMetrics(ActorMetrics):
    """Implements :class:`fetcher.domain.job_stages.JobObserver`."""

    def __init__(
        self, registry: CollectorRegistry, *, places: int, tenant_label: bool = False
    ) -> None:
        """``places``: how many jobs the process runs at most. ``tenant_label``: what jobs count has
        a label with the tenant."""
        super().__init__(registry)
        self._jobs = JobFamilies(registry, tenant_label=tenant_label)
        self.dead_letters = DeadLetterMetrics(registry)
        Gauge("fetcher_job_places", "Jobs that this process runs at most.", registry=registry).set(
            places
        )
        self._rows = Counter(
            "fetcher_extraction_rows", "Rows that were read from sources.", registry=registry
        )
        self._bytes = Counter(
            "fetcher_extraction_bytes",
            "Bytes of those rows as they stand in the result document.",
            registry=registry,
        )
        self.rejected = Counter(
            "fetcher_deliveries_rejected",
            "Deliveries sent to the dead letters, by reason.",
            ["reason"],
            registry=registry,
        )
        self.rejected_waiting = Gauge(
            "fetcher_deliveries_rejected_waiting",
            "Rejected deliveries that the dead letters do not take: each holds a worker's place.",
            registry=registry,
        )
        self.expired = Counter(
            "fetcher_expired",
            "What was deleted because its time was over (result, job, audit).",
            ["what"],
            registry=registry,
        )

    def jobs_of(self, tenant: Tenant) -> JobMetrics:
        """What the tenant's jobs count. Its ``forget`` ends that when the tenant has stopped."""
        return JobMetrics(self._jobs, tenant, self.stage_ended)

    def stage_ended(self, stage: JobStage, seconds: float) -> None:
        self.stages.labels(stage=stage.value).observe(max(0.0, seconds))

    def extracted(self, rows: int, size_bytes: int) -> None:
        self._rows.inc(max(0, rows))
        self._bytes.inc(max(0, size_bytes))
