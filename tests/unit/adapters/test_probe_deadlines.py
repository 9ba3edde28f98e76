"""How long each probe may take (spec configuration 6.4): fixed, and longer than its own wait."""

import pytest

from fetcher.adapters.amqp import probe as amqp
from fetcher.adapters.mongo import probe as mongo
from fetcher.adapters.redis import probe as redis
from fetcher.adapters.s3 import store as s3
from fetcher.adapters.sqlite import probe as sqlite


@pytest.mark.parametrize(
    ("seconds", "own", "expected"),
    [
        (mongo.TIMEOUT_SECONDS, mongo.PING_SECONDS, 2),
        (redis.TIMEOUT_SECONDS, redis.PING_SECONDS, 1),
        (amqp.TIMEOUT_SECONDS, amqp.TRY_SECONDS, 2),
        (s3.PROBE_SECONDS, s3.HEAD_BUCKET.seconds, 2),
        (sqlite.TIMEOUT_SECONDS, sqlite.READ_SECONDS, 2),
    ],
)
def test_deadlines_of_probes(seconds: float, own: float, expected: float) -> None:
    assert seconds == expected
    assert 0.5 < own < seconds
