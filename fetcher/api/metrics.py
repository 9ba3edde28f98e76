"""What the HTTP side measures (spec configuration 8)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from fetcher.ports import ProbeResult

KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
MILLISECONDS_BUCKETS = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2000, 5000)

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


_UNTYPED = b"# TYPE readyz_check_status untyped"
_COUNTER = b"# TYPE readyz_check_status counter"


def process_registry() -> CollectorRegistry:
    """A registry of the process's own with the ``process_*`` and ``python_info`` families."""
    disable_created_metrics()  # type: ignore[no-untyped-call] # the library left it untyped
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry) -> bytes:
    """The text exposition format, 0.0.4, which has no rule against a counter without a suffix."""
    return generate_latest(registry).replace(_UNTYPED, _COUNTER)


def show_redis(registry: CollectorRegistry, is_away: Callable[[], bool]) -> None:
    """``is_away`` is asked at every scrape."""
    gauge = Gauge(
        "fetcher_redis_away",
        "1 while process memory stands in for Redis: its last use failed, a minute ago at most.",
        registry=registry,
    )
    gauge.set_function(is_away)


class HttpMetrics:
    """Requests by method, route template and status; never by raw path."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "fetcher_http_requests",
            "Requests answered.",
            ["method", "route", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "fetcher_http_request_duration_seconds",
            "From the request's head to the end of its answer.",
            ["method", "route"],
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )

    def observe(self, *, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in KNOWN_METHODS else "OTHER"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)


class ReadinessMetrics:
    """The three families whose exact names are the Wire's.

    A collector of our own, since the client library appends ``_total`` to a counter's name.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts: defaultdict[tuple[str, str], list[int]] = defaultdict(
            lambda: [0] * (len(MILLISECONDS_BUCKETS) + 1)
        )
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._self_probe: dict[str, bool] = {}
        registry.register(self)

    def observe(self, dependency: str, result: ProbeResult) -> None:
        """Count one probe of one request, whatever came of it."""
        key = (dependency, str(result.status))
        slot = sum(bound < result.latency_ms for bound in MILLISECONDS_BUCKETS)
        self._counts[key][slot] += 1
        self._sums[key] += result.latency_ms

    def set_self_probe(self, name: str, passed: bool) -> None:
        self._self_probe[name] = passed

    def collect(self) -> Iterator[Metric]:
        """Called by the registry. A family appears once it has a sample."""
        if self._counts:
            yield self._durations()
            yield self._outcomes()
        if self._self_probe:
            gauge = GaugeMetricFamily(
                "selfprobe_result", "Start-up self-probe: 1 passed, 0 failed.", labels=["dep"]
            )
            for name, passed in sorted(self._self_probe.items()):
                gauge.add_metric([name], int(passed))
            yield gauge

    def describe(self) -> Iterable[Metric]:
        """Nothing in advance: the registry must not collect at registration."""
        return ()

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "readyz_check_duration_ms", "Milliseconds of a probe.", labels=["dep", "status"]
        )
        bounds = [*(str(bound) for bound in MILLISECONDS_BUCKETS), "+Inf"]
        for key, counts in sorted(self._counts.items()):
            below = [float(sum(counts[: index + 1])) for index in range(len(bounds))]
            family.add_metric(list(key), list(zip(bounds, below, strict=True)), self._sums[key])
        return family

    def _outcomes(self) -> Metric:
        # The library writes the suffix into the TYPE line of a "counter"; render() sets it right.
        family = Metric("readyz_check_status", "Outcomes of probes.", "unknown")
        for (dependency, status), counts in sorted(self._counts.items()):
            labels = {"dep": dependency, "status": status}
            family.add_sample("readyz_check_status", labels, float(sum(counts)))
        return family
