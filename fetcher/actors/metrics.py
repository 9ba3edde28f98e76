"""What the actors count (spec configuration 8, with the names of the decisions)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class ActorMetrics:
    """Instruments on a registry of the process's own; no label names a tenant or a connection."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.restarts = Counter(
            "fetcher_actor_restarts", "Crashes of an actor.", ["actor"], registry=registry
        )
        self.jobs = Counter(
            "fetcher_jobs", "Attempts that ended, by outcome.", ["outcome"], registry=registry
        )
        self.job_seconds = Histogram(
            "fetcher_job_duration_seconds",
            "Run time of an attempt.",
            ["outcome"],
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
            registry=registry,
        )
        self.jobs_in_flight = Gauge(
            "fetcher_jobs_in_flight", "Jobs that this process runs now.", registry=registry
        )
        self.publishes = Counter(
            "fetcher_queue_publish",
            "Publishes by kind (work, event, reference_event) and result.",
            ["kind", "result"],
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
        self.reaped = Counter(
            "fetcher_leases_reaped",
            "Leases that ran out, by what became of the job.",
            ["outcome"],
            registry=registry,
        )
        self.breakers_open = Gauge(
            "fetcher_connection_breakers_open",
            "Connections that are left alone because they are down.",
            registry=registry,
        )
        self.outbox_pending = Gauge(
            "fetcher_outbox_pending", "Terminal events not yet published.", registry=registry
        )
        self.outbox_oldest_seconds = Gauge(
            "fetcher_outbox_oldest_seconds",
            "Age of the oldest unpublished terminal event.",
            registry=registry,
        )
        self.hints_dropped = Gauge(
            "fetcher_hints_dropped",
            "Hints that found their channel full.",
            ["channel"],
            registry=registry,
        )
