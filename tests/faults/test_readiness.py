"""Readiness and health of both roles while real dependencies are cut off, silent, paused, stopped.

Spec configuration 5, 6 and 17.5. The deadline of a request is above what a loaded machine needs:
how long an answer takes at most is held by the actor's own tests.
"""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.e2e.broker import url_at
from tests.e2e.cluster import Api, Cluster
from tests.faults.proxy_thread import ThreadedProxy, threaded_proxy
from tests.scale import nightly
from tests.servers.addresses import S3Access
from tests.servers.own_servers import OwnServer, own_server
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

ANSWER_SECONDS = 8.0
RECOVERY_SECONDS = 90.0
"""The broker's breaker opens for 30 s after five failures in a row."""
BUCKET = "results"
ENTRIES = {
    "manager": {"mongodb", "rabbitmq", "redis"},
    "worker": {"mongodb", "rabbitmq", "s3"},
}
HIT = {
    "mongodb": {"manager": 503, "worker": 503},
    "rabbitmq": {"manager": 503, "worker": 503},
    "redis": {"manager": 200, "worker": 200},
    "s3": {"manager": 200, "worker": 503},
}
"""The status of each role while that one is away: the manager has no S3, the worker no Redis, and
Redis is optional."""


@dataclass
class Dependency:
    name: str
    server: OwnServer
    gate: ThreadedProxy


@dataclass
class Place:
    dependencies: dict[str, Dependency]
    processes: dict[str, FetcherProcess]
    apis: dict[str, Api]

    def make_bucket(self) -> None:
        """moto forgets with its end."""
        s3 = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.dependencies['s3'].server.port}",
            aws_access_key_id="k",
            aws_secret_access_key="s",
            region_name="us-east-1",
        )
        s3.create_bucket(Bucket=BUCKET)
        s3.close()


def asked(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}{path}", timeout=ANSWER_SECONDS
        ) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with a_place(tmp_path_factory.mktemp("readiness")) as found:
        yield found


@contextmanager
def a_place(folder: Path) -> Iterator[Place]:
    kinds = {"rabbitmq": "RabbitMQ", "mongodb": "MongoDB", "redis": "Redis", "s3": "S3"}
    with ExitStack() as stack:
        dependencies = {}
        for name, kind in kinds.items():
            server = stack.enter_context(own_server(kind))
            gate = stack.enter_context(threaded_proxy("127.0.0.1", server.port))
            dependencies[name] = Dependency(name, server, gate)
        found = Place(dependencies, {}, {})
        found.make_bucket()
        gates = {name: each.gate.port for name, each in dependencies.items()}
        cluster = Cluster(
            folder=folder,
            amqp_url=url_at(gates["rabbitmq"]),
            mongo_uri=f"mongodb://127.0.0.1:{gates['mongodb']}/?directConnection=true",
            mongo_name="fetcher",
            s3=S3Access(endpoint=f"http://127.0.0.1:{gates['s3']}", access_key="k", secret_key="s"),
            bucket=BUCKET,
            work_queue="work",
            exchange="events",
            event_queue="subscriber",
            changes={"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(gates["redis"])},
        )
        for role, started in (("manager", cluster.manager()), ("worker", cluster.worker())):
            found.processes[role], found.apis[role] = stack.enter_context(started)
        yield found


def statuses(checks: dict[str, Any]) -> dict[str, str]:
    return {name: entry["status"] for name, entry in checks.items()}


def wait_until_all_is_up(place: Place) -> None:
    def is_up() -> bool:
        answers = {role: asked(api.port, "/readyz") for role, api in place.apis.items()}
        return all(
            status == 200 and statuses(body["checks"]) == dict.fromkeys(ENTRIES[role], "up")
            for role, (status, body) in answers.items()
        )

    eventually_sync(is_up, deadline_seconds=RECOVERY_SECONDS, what="all dependencies are up")


def check_down(place: Place, name: str) -> None:
    """It is told as down, and the others as up; twenty who ask at once are each answered, and
    health stays what it was."""
    wait_for_down(place, name)
    for role, api in place.apis.items():
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _, at=api.port: asked(at, "/readyz"), range(20)))
        for status, body in answers:
            assert set(body) == {"status", "checks", "version", "deployment_mode"}
            found = statuses(body["checks"])
            assert set(found) == ENTRIES[role]
            # On a machine that has too much to do one of the others may be late as well.
            decides = {each for each, state in found.items() if state == "down"} - {"redis"}
            assert (status, body["status"]) == (
                (503, "unhealthy") if decides else (200, "healthy")
            ), body
            if name in found:
                assert body["checks"][name]["status"] == "down", body
                assert body["checks"][name]["error"]
                # one that did not word its own end in time has no more to tell
                assert body["checks"][name].get("tls", False) is False
        assert asked(api.port, "/health") == (200, {"status": "healthy"})


def wait_for_down(place: Place, name: str) -> None:
    """A driver may take a moment to notice; what it says until then is of no interest."""

    def is_told() -> bool:
        told = []
        for role, api in place.apis.items():
            status, body = asked(api.port, "/readyz")
            expected = dict.fromkeys(ENTRIES[role], "up")
            if name in expected:
                expected[name] = "down"
            told.append((status, statuses(body["checks"])) == (HIT[name][role], expected))
        return all(told)

    eventually_sync(is_told, deadline_seconds=RECOVERY_SECONDS, what=f"{name} alone is down")


@contextmanager
def away(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    begin()
    try:
        yield
    finally:
        end()


NAMES = ["mongodb", "redis", "s3", "rabbitmq"]


@pytest.mark.parametrize("name", NAMES)
def test_dependency_that_is_cut_off_is_down_and_comes_back(place: Place, name: str) -> None:
    wait_until_all_is_up(place)
    gate = place.dependencies[name].gate
    with away(gate.shut, gate.open):
        check_down(place, name)
    wait_until_all_is_up(place)


@pytest.mark.parametrize("name", NAMES)
def test_dependency_whose_packets_are_lost_holds_no_answer(place: Place, name: str) -> None:
    wait_until_all_is_up(place)
    gate = place.dependencies[name].gate
    with away(gate.silence, gate.open):
        check_down(place, name)
    wait_until_all_is_up(place)


@pytest.mark.parametrize("name", NAMES)
def test_dependency_that_is_paused_holds_no_answer(place: Place, name: str) -> None:
    wait_until_all_is_up(place)
    server = place.dependencies[name].server
    with away(server.pause, server.resume):
        check_down(place, name)
    wait_until_all_is_up(place)


@nightly("each is started anew, in a place of its own")
def test_dependencies_that_were_stopped_come_back(tmp_path: Path) -> None:
    """In a place of its own: a server that is started again is another process."""
    with a_place(tmp_path) as place:
        for name in NAMES:
            wait_until_all_is_up(place)
            server = place.dependencies[name].server
            with away(server.stop, server.start):
                check_down(place, name)
            if name == "s3":
                entry = asked(place.apis["worker"].port, "/readyz")[1]["checks"]["s3"]
                assert (entry["status"], entry["error"]) == ("down", "bucket not found")
                place.make_bucket()
        wait_until_all_is_up(place)


def test_two_that_are_cut_off_are_both_told_and_the_others_up(place: Place) -> None:
    wait_until_all_is_up(place)
    gates = [place.dependencies[name].gate for name in ("mongodb", "s3")]

    def both_are_told() -> bool:
        status, body = asked(place.apis["worker"].port, "/readyz")
        expected = {"mongodb": "down", "rabbitmq": "up", "s3": "down"}
        return (status, statuses(body["checks"])) == (503, expected)

    with ExitStack() as stack:
        for gate in gates:
            stack.enter_context(away(gate.shut, gate.open))
        eventually_sync(both_are_told, deadline_seconds=RECOVERY_SECONDS, what="both are down")
    wait_until_all_is_up(place)


@pytest.mark.parametrize("role", ["worker", "manager"])
def test_process_drains_although_a_dependency_hangs(place: Place, role: str) -> None:
    """The last tests of the module: they end its processes."""
    place.dependencies["mongodb"].gate.silence()
    process, port = place.processes[role], place.apis[role].port
    process.send(signal.SIGTERM)

    def is_draining() -> bool:
        status, body = asked(port, "/readyz")
        return (status, body["checks"]) == (
            503,
            {"draining": {"status": "down", "reason": "graceful drain in progress"}},
        )

    eventually_sync(is_draining, deadline_seconds=10, what="it drains")
    assert process.wait_exit(deadline_seconds=60) == 0
