"""The table of the broker's objects, and how what is there is judged."""

import pytest

from fetcher.adapters.amqp.topology import QueueType, Topology, TopologyNames, topology
from fetcher.adapters.amqp.topology_check import _learn, _told_difference, judge
from fetcher.domain.topology import FindingStatus


def table(queue_type: QueueType = QueueType.QUORUM, timeout_ms: int | None = None) -> Topology:
    return topology(TopologyNames(), queue_type=queue_type, consumer_timeout_ms=timeout_ms)


def test_the_table_holds_what_the_wire_says() -> None:
    found = table()
    assert [(each.name, each.kind) for each in found.exchanges] == [
        ("fetcher.extract-external-data.exchange", "direct"),
        ("fetcher.dlx", "direct"),
        ("fetcher.job.events", "topic"),
    ]
    assert [each.name for each in found.queues] == [
        "fetcher.extract-external-data.queue",
        "fetcher.dlq",
        "fetcher.job.completed.queue",
        "fetcher.job.failed.queue",
    ]
    assert [(each.exchange, each.queue, each.key) for each in found.bindings] == [
        (
            "fetcher.extract-external-data.exchange",
            "fetcher.extract-external-data.queue",
            "fetcher.job.key",
        ),
        ("fetcher.dlx", "fetcher.dlq", "fetcher.dlq.key"),
        ("fetcher.job.events", "fetcher.job.completed.queue", "job.completed"),
        ("fetcher.job.events", "fetcher.job.failed.queue", "job.failed"),
    ]


def test_work_and_dead_letters_are_quorum_queues_that_lose_nothing() -> None:
    work, dead, *events = table(timeout_ms=1_800_000).queues
    assert work.arguments == {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "fetcher.dlx",
        "x-dead-letter-routing-key": "fetcher.dlq.key",
        "x-consumer-timeout": 1_800_000,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": 50,
    }
    assert dead.arguments == {
        "x-queue-type": "quorum",
        "x-message-ttl": 604_800_000,
        "x-max-length": 10_000,
        "x-overflow": "reject-publish",
        "x-delivery-limit": 1_000_000,
    }
    assert [each.arguments for each in events] == [{}, {}]


def test_classic_queues_for_old_brokers_have_the_wires_arguments() -> None:
    work, dead, *_ = table(QueueType.CLASSIC).queues
    assert work.arguments == {
        "x-dead-letter-exchange": "fetcher.dlx",
        "x-dead-letter-routing-key": "fetcher.dlq.key",
    }
    assert dead.arguments == {
        "x-message-ttl": 604_800_000,
        "x-max-length": 10_000,
        "x-overflow": "reject-publish",
    }


def test_a_quorum_queue_where_classic_was_asked_for_is_judged_as_one() -> None:
    work = table(QueueType.CLASSIC).queues[0]
    status, *told = judge(work, {"x-queue-type": "quorum", **work.arguments})
    assert (status, told) == (FindingStatus.ACCEPTED, ["its type is quorum"])


@pytest.mark.parametrize("queue_type", QueueType)
def test_a_stream_is_no_queue_of_jobs_or_dead_letters(queue_type: QueueType) -> None:
    work, dead, event, _ = table(queue_type).queues
    for queue in (work, dead):
        status, *told = judge(queue, {**queue.arguments, "x-queue-type": "stream"})
        assert (status, told) == (
            FindingStatus.DIFFERS,
            [f"x-queue-type is stream, should be {queue_type}: nothing is ever taken off a stream"],
        )
    # A subscriber may read events as it likes.
    assert judge(event, {"x-queue-type": "stream"})[0] is FindingStatus.ACCEPTED


def test_a_lower_delivery_limit_or_timeout_is_a_difference() -> None:
    work = table(timeout_ms=1_800_000).queues[0]
    actual = {**work.arguments, "x-delivery-limit": 1, "x-consumer-timeout": 60_000}
    status, *told = judge(work, actual)
    assert status is FindingStatus.DIFFERS
    assert told == [
        "x-consumer-timeout is 60000, should be 1800000",
        "x-delivery-limit is 1, should be 50",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("received '3' but current is '50'", {"x-a": 50}),
        ("received '3' but current is the value '7' of type 'long'", {"x-a": 7}),
        ("received 'b' but current is the value '7' of type 'longstr'", {"x-a": "7"}),
        ("received '3' but current is none", {}),
    ],
)
def test_what_the_broker_says_of_an_argument_is_learned(
    text: str, expected: dict[str, object]
) -> None:
    actual: dict[str, object] = {"x-a": 3}
    head = "PRECONDITION_FAILED - inequivalent arg 'x-a' for queue 'q' in vhost '/': "
    assert _learn(actual, head + text)  # type: ignore[arg-type]  # a test's dict
    assert actual == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PRECONDITION_FAILED - parameters for queue 'q' in vhost '/' not equivalent",
        "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'x'",
        "inequivalent arg 'x-a' for queue 'q' in vhost '/': received '1' but current is 'x'",
        "inequivalent arg 'x-a' for queue 'q' in vhost '/': received '1' but current is '3'",
        "inequivalent arg 'x-b' for queue 'q' in vhost '/': received '1' but current is none",
        "inequivalent arg 'x-a' for " + "': received " * 50_000,
    ],
)
def test_what_cannot_be_learned_ends_the_comparison(text: str) -> None:
    actual: dict[str, object] = {"x-a": 3}
    assert not _learn(actual, text)  # type: ignore[arg-type]  # a test's dict
    assert actual == {"x-a": 3}
    assert _told_difference(text, "durable")
