"""Operators ask while MongoDB and the broker hang: connections stand, and nothing arrives."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.e2e import broker
from tests.e2e.cluster import Answer, Cluster
from tests.faults.proxy_thread import threaded_proxy
from tests.servers.waiting import eventually_sync

pytestmark = [pytest.mark.e2e, pytest.mark.integration]

OF_OTHERS = ("queues", "outbox", "jobs", "activity", "breakers", "dead-letters", "audit")
OF_THE_PROCESS = ("dependencies", "actors")
"""Told from what the process knows: that they are down, at the worst."""


def through(uri: str, port: int) -> str:
    """The same address behind a gate on this machine."""
    parts = urlsplit(uri)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    query = "&".join(filter(None, (parts.query, "directConnection=true")))
    return urlunsplit((parts.scheme, f"{login}127.0.0.1:{port}", parts.path, query, ""))


def test_whatever_hangs_each_question_is_answered_and_later_well(cluster: Cluster) -> None:
    mongo, rabbit = urlsplit(cluster.mongo_uri), broker.address_of(cluster.amqp_url)
    with (
        threaded_proxy(mongo.hostname or "127.0.0.1", mongo.port or 27017) as mongo_gate,
        threaded_proxy(rabbit.host, rabbit.port) as broker_gate,
    ):
        cluster.changes |= {
            "MONGO_URI": through(cluster.mongo_uri, mongo_gate.port),
            "RABBITMQ_HOST": "127.0.0.1",
            "RABBITMQ_PORT_AMQP": str(broker_gate.port),
        }
        with cluster.manager() as (_, api):

            def ask(what: str) -> Answer:
                # The client's own deadline is 30 s: an answer that is held longer fails the test.
                return api.call("GET", f"/v1/operations/{what}")

            def statuses() -> dict[str, int]:
                everything = (*OF_OTHERS, *OF_THE_PROCESS)
                with ThreadPoolExecutor(len(everything)) as pool:
                    return dict(
                        zip(everything, (a.status for a in pool.map(ask, everything)), strict=True)
                    )

            before = statuses()
            # The queue of dead letters has one name on a broker: it may be there or not.
            assert before.pop("dead-letters") in (200, 409)
            assert before == dict.fromkeys(before, 200)
            mongo_gate.silence()
            broker_gate.silence()
            assert statuses() == dict.fromkeys(OF_OTHERS, 503) | dict.fromkeys(OF_THE_PROCESS, 200)
            mongo_gate.open()
            broker_gate.open()
            eventually_sync(
                lambda: before.items() <= statuses().items(),
                deadline_seconds=60,
                what="all is told again",
            )
