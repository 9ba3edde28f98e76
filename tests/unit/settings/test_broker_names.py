"""Names of queue and exchange: what the AMQP client sends, and no name of another use."""

import pytest
from aiormq import spec

from fetcher.adapters.amqp.topology import TopologyNames, topology
from fetcher.settings import Role
from fetcher.settings.broker_rules import OUR_EXCHANGES, OUR_QUEUES
from tests.unit.settings.test_loading import WORKER, load, refusals

QUEUE, EXCHANGE = "RABBITMQ_FETCHER_WORK_QUEUE", "RABBITMQ_JOB_EVENTS_EXCHANGE"
LONGEST = {QUEUE: 200, EXCHANGE: 127}


@pytest.mark.parametrize("name", [QUEUE, EXCHANGE])
@pytest.mark.parametrize(
    "text", ["two\nlines", "a\x7fb", "jobs$", "jobsé", "ä", "a\\b", "a*", "long"]
)
def test_a_name_that_amqp_cannot_carry_is_refused(name: str, text: str) -> None:
    text = "x" * (LONGEST[name] + 1) if text == "long" else text
    assert refusals({**WORKER, name: text}, Role.WORKER) == [
        f"{name}: at most {LONGEST[name]} letters and digits of ASCII, blanks, _.:@#,/+-"
    ]


@pytest.mark.parametrize("text", ["a-zA.Z_0:9@ #,/+", "longest"])
def test_a_name_that_is_taken_is_one_that_the_client_sends(text: str) -> None:
    queue, exchange = ("x" * LONGEST[name] if text == "longest" else text for name in LONGEST)
    settings = load(Role.WORKER, **{**WORKER, QUEUE: queue, EXCHANGE: exchange})
    spec.Queue.Declare(queue=settings.work_queue)
    spec.Exchange.Declare(exchange=settings.events_exchange)
    spec.Basic.Publish(exchange=settings.events_exchange, routing_key=settings.work_queue)


@pytest.mark.parametrize(
    ("name", "taken"),
    [*((QUEUE, each) for each in OUR_QUEUES), *((EXCHANGE, each) for each in OUR_EXCHANGES)],
)
def test_a_name_of_the_topology_that_has_another_use_is_refused(name: str, taken: str) -> None:
    assert refusals({**WORKER, name: taken}, Role.WORKER) == [
        f"{name}: {taken} has another use already"
    ]


def test_the_names_with_another_use_are_those_of_the_topology() -> None:
    table = topology(TopologyNames(work_queue="work", events_exchange="events"))
    assert {each.name for each in table.queues} == {"work", *OUR_QUEUES}
    assert {each.name for each in table.exchanges} == {"events", *OUR_EXCHANGES}
