"""What the benchmark of tenants reads out of logs and metrics."""

import json
from datetime import UTC, datetime

import pytest

from benchmarks.tenants_logs import (
    BrokerConnections,
    broker_connections,
    buckets,
    consumers_since,
    median_and_worst,
    value,
    worst_bucket,
)

STOPPED_AT = datetime(2031, 3, 14, 9, 26, 53, tzinfo=UTC).timestamp()


def a_line(tenant_id: str, second: float, msg: str = "consumer_started") -> str:
    timestamp = f"2031-03-14T09:26:{second:06.3f}Z"
    return json.dumps({"tenant_id": tenant_id, "timestamp": timestamp, "msg": msg})


def test_each_tenants_consumer_counts_once_since_the_broker_went() -> None:
    lines = [
        a_line("acme", 50),
        a_line("beta", 51),
        a_line("acme", 54, "consumer_lost"),
        "no JSON, of some library",
        a_line("acme", 58.5),
        a_line("acme", 59),
    ]
    assert consumers_since("\n".join(lines), STOPPED_AT) == {"acme": STOPPED_AT + 5.5}
    assert consumers_since("", STOPPED_AT) == {}


def accepted(second: float) -> str:
    at = f"2031-03-14 09:26:{second:09.6f}+00:00"
    return f"{at} [info] <0.1.0> accepting AMQP connection <0.1.0> (127.0.0.1:1 -> 127.0.0.1:2)"


def test_connections_are_counted_by_seconds_from_the_first_on() -> None:
    refused = "2031-03-14 09:26:55.000000+00:00 [error] <0.2.0> PLAIN login refused: user 't1'"
    lines = [accepted(53.9), accepted(54.1), accepted(54.8), refused, accepted(56)]
    seen = broker_connections("\n".join(["  ##  ##      RabbitMQ", "", *lines]))
    first_at = STOPPED_AT + 0.9
    assert seen == BrokerConnections(first_at=first_at, opened=4, most_a_second=3, refused=1)


def test_a_broker_that_nobody_came_to() -> None:
    none = BrokerConnections(first_at=None, opened=0, most_a_second=0, refused=0)
    assert broker_connections("") == none


METRICS = """\
# HELP beat_seconds How late.
# TYPE beat_seconds histogram
beat_seconds_bucket{le="0.005"} 7.0
beat_seconds_bucket{le="0.25"} 9.0
beat_seconds_bucket{le="+Inf"} 9.0
beat_seconds_count 9.0
open_now 1.2e+02
"""


def test_metrics_are_read_as_they_are_scraped() -> None:
    assert buckets(METRICS, "beat_seconds") == {"0.005": 7, "0.25": 9, "+Inf": 9}
    assert value(METRICS, "open_now") == 120
    with pytest.raises(KeyError):
        value(METRICS, "open")


def test_the_worst_bucket_is_the_last_one_that_grew() -> None:
    before = buckets(METRICS, "beat_seconds")
    assert worst_bucket(before, {"0.005": 8, "0.25": 10, "+Inf": 10}) == "0.005"
    assert worst_bucket(before, {"0.005": 8, "0.25": 12, "+Inf": 12}) == "0.25"
    assert worst_bucket(before, {"0.005": 7, "0.25": 9, "+Inf": 10}) == "+Inf"
    assert worst_bucket(before, before) == "0"
    assert worst_bucket({}, before) == "0.25"


def test_the_median_of_a_few_and_the_worst() -> None:
    assert median_and_worst([5.0, 1.0, 3.0]) == (3.0, 5.0)
