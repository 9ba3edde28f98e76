"""What the actors of every role count (spec configuration 8, with the names of the decisions).

No label of these names a tenant or a connection. docs/observability.md explains each family.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram

from fetcher.actors.sampled_metrics import SampledMetrics

LATENESS_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)

FROM_ZERO = (("event", "unrouted"), ("reference_event", "refused"))
"""There before they happen: alerts look for an increase."""


class ActorMetrics:
    """Instruments on a registry of the process's own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.restarts = Counter(
            "fetcher_actor_restarts", "Crashes of an actor.", ["actor"], registry=registry
        )
        self.publishes = Counter(
            "fetcher_queue_publish",
            "Publishes by kind (work, event, reference_event) and result.",
            ["kind", "result"],
            registry=registry,
        )
        for kind, result in FROM_ZERO:
            self.publishes.labels(kind=kind, result=result)
        self.audit_unrecorded = Counter(
            "fetcher_audit_unrecorded",
            "Audit entries that the record store did not take; they are in the log.",
            registry=registry,
        )
        self.lateness = Histogram(
            "fetcher_heartbeat_lateness_seconds",
            "How late the process woke from a sleep of a quarter of a second.",
            buckets=LATENESS_BUCKETS,
            registry=registry,
        )
        self.stages = Histogram(
            "fetcher_job_stage_duration_seconds",
            "Duration of a stage of a job: wait, claim, connect, read, store, settle, event.",
            ["stage"],
            buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600),
            registry=registry,
        )
        self.sampled = SampledMetrics(registry)
