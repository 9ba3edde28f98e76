"""What the logs of a worker and of a broker tell of many tenants' connections, and when."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_ACCEPTED: Final = " accepting AMQP connection "
_REFUSED: Final = ("login refused", "handshake_timeout", "is down", "not_allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConnections:
    """``first_at`` is None where there was none."""

    first_at: float | None
    opened: int
    most_a_second: int
    """In the fullest second, counted from the first one on."""
    refused: int


def consumers_since(worker_log: str, since: float) -> Mapping[str, float]:
    """When each tenant's consumer was at its queue for the first time after ``since`` (UNIX
    seconds), as the worker's log has it."""
    started: dict[str, float] = {}
    for line in worker_log.splitlines():
        if '"consumer_started"' not in line:
            continue
        record = json.loads(line)
        at = datetime.fromisoformat(record["timestamp"]).timestamp()
        if at >= since:
            started.setdefault(record["tenant_id"], at)
    return started


def broker_connections(broker_log: str) -> BrokerConnections:
    lines = broker_log.splitlines()
    times = [_time_of(line) for line in lines if _ACCEPTED in line]
    first_at = min(times, default=None)
    seconds = Counter(int(at - first_at) for at in times) if first_at is not None else Counter()
    return BrokerConnections(
        first_at=first_at,
        opened=len(times),
        most_a_second=max(seconds.values(), default=0),
        refused=sum("[error]" in line and any(word in line for word in _REFUSED) for line in lines),
    )


def worst_bucket(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """The upper end of the last bucket of a histogram in which something was counted between two
    scrapes: nothing was above it. Both are cumulative counts by ``le``; "0" where nothing was."""
    bounds = sorted(after, key=float)
    counted = [after[bound] - before.get(bound, 0.0) for bound in bounds]
    if not counted or counted[-1] == 0:
        return "0"
    return next(bound for bound, count in zip(bounds, counted, strict=True) if count == counted[-1])


def buckets(metrics: str, family: str) -> Mapping[str, float]:
    """Of a histogram without further labels."""
    start = f'{family}_bucket{{le="'
    found = [line.removeprefix(start) for line in metrics.splitlines() if line.startswith(start)]
    return {bound: float(count) for bound, _, count in (line.partition('"} ') for line in found)}


def value(metrics: str, name: str) -> float:
    """Of a metric without labels. Raise KeyError."""
    found = dict(line.split(" ", 1) for line in metrics.splitlines() if line[:1] not in ("#", ""))
    return float(found[name])


def median_and_worst(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[-1]


def _time_of(line: str) -> float:
    """``2031-03-14 09:26:53.589793+00:00 [info] ...``"""
    return datetime.fromisoformat(line[:32]).timestamp()
