"""What the probes said in the last hour, kept by this process for itself."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from fetcher.ports import KnownDependency, ProbedMinute, ProbeResult, ProbeStatus, UtcNow

MINUTES: Final = 60
FAILING: Final = (ProbeStatus.DOWN, ProbeStatus.DEGRADED)


@dataclass(slots=True)
class _Track:
    last: ProbeResult
    probed_at: datetime
    minutes: deque[ProbedMinute] = field(default_factory=lambda: deque(maxlen=MINUTES))


class ProbeHistory:
    """At most an hour of minutes for each dependency, whoever asked for the probes."""

    def __init__(self, now: UtcNow) -> None:
        self._now = now
        self._tracks: dict[str, _Track] = {}

    def observe(self, results: Mapping[str, ProbeResult]) -> None:
        """Note one round of probes."""
        now = self._now()
        minute = now.replace(second=0, microsecond=0)
        for name, result in results.items():
            track = self._tracks.setdefault(name, _Track(result, now))
            track.last, track.probed_at = result, now
            if not track.minutes or track.minutes[-1].minute < minute:
                track.minutes.append(
                    ProbedMinute(minute=minute, probes=0, failures=0, slowest_ms=0)
                )
            track.minutes[-1] = _with(track.minutes[-1], result)

    def known(self) -> Sequence[KnownDependency]:
        since = self._now() - timedelta(minutes=MINUTES)
        return [
            KnownDependency(
                name=name,
                last=track.last,
                probed_at=track.probed_at,
                minutes=[each for each in track.minutes if each.minute > since],
            )
            for name, track in self._tracks.items()
        ]


def _with(minute: ProbedMinute, result: ProbeResult) -> ProbedMinute:
    failed = result.status in FAILING
    return replace(
        minute,
        probes=minute.probes + 1,
        failures=minute.failures + failed,
        slowest_ms=max(minute.slowest_ms, result.latency_ms),
        error=result.error if failed else minute.error,
    )
