"""When a message came to the dead letters, and whether looking at one may cost it anything."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from fetcher.adapters.amqp.harmless_looks import is_look_harmless
from fetcher.adapters.dead_letters import dead_since

MONDAY = datetime(2026, 3, 16, 9, tzinfo=UTC)
OLD, NEW = (3, 13, 7), (4, 1, 0)


@pytest.mark.parametrize(
    ("headers", "since"),
    [
        (
            {
                "x-fetcher-reject-reason": "malformed",
                "x-fetcher-rejected-at": "2026-03-16T09:00:00Z",
            },
            MONDAY,
        ),
        # rejected by us: what the broker did to it before is another story
        (
            {
                "x-fetcher-reject-reason": "malformed",
                "x-death": [{"time": MONDAY}],
            },
            None,
        ),
        ({"x-fetcher-rejected-at": "2026-03-16T09:00:00Z"}, None),
        ({"x-death": [{"time": MONDAY}, {"time": datetime(2020, 1, 1, tzinfo=UTC)}]}, MONDAY),
        ({"x-death": [{"time": MONDAY.replace(tzinfo=None)}]}, MONDAY),
        ({"x-fetcher-reject-reason": "malformed", "x-fetcher-rejected-at": "soon"}, None),
        ({"x-fetcher-reject-reason": "malformed", "x-fetcher-rejected-at": 7}, None),
        (
            {
                "x-fetcher-reject-reason": "malformed",
                "x-fetcher-rejected-at": "0001-01-01T00:00:00+14:00",
            },
            None,
        ),
        ({"x-death": "no list"}, None),
        ({"x-death": [7]}, None),
        ({}, None),
    ],
)
def test_our_mark_or_else_the_brokers_latest_says_since_when(
    headers: Mapping[str, object], since: datetime | None
) -> None:
    assert dead_since(headers) == since


@pytest.mark.parametrize(
    ("arguments", "version", "is_harmless"),
    [
        ({"x-message-ttl": 1}, NEW, True),  # classic queues do not count deliveries
        ({"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}, NEW, True),
        ({"x-queue-type": "quorum", "x-delivery-limit": -1}, NEW, True),
        ({"x-queue-type": "quorum", "x-delivery-limit": 50}, OLD, False),
        ({"x-queue-type": "quorum"}, OLD, True),
        ({"x-queue-type": "quorum"}, NEW, False),  # 20 by default
        (None, OLD, True),
        (None, NEW, False),
        (None, (), False),  # a broker that does not tell its version
    ],
)
def test_a_queue_that_drops_what_is_delivered_often_is_not_looked_into(
    arguments: Mapping[str, str | int] | None, version: tuple[int, ...], is_harmless: bool
) -> None:
    assert is_look_harmless(arguments, version) is is_harmless
