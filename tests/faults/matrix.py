"""Every kind of fault on every link between our processes and their dependencies."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, product
from typing import Any, Final
from urllib.parse import urlsplit

from tests.e2e import broker
from tests.e2e.cluster import Answer, Api, Cluster
from tests.e2e.test_operations_hung import through
from tests.faults.faults import Fault, Kind, drawn
from tests.faults.proxy_thread import ThreadedProxy, threaded_proxy
from tests.faults.sigterm_load import Records
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

SOURCE: Final = "all → source"
MANAGER_MONGODB: Final = "manager → MongoDB"
MANAGER_RABBITMQ: Final = "manager → RabbitMQ"
MANAGER_REDIS: Final = "manager → Redis"
WORKERS_MONGODB: Final = "workers → MongoDB"
WORKERS_RABBITMQ: Final = "workers → RabbitMQ"
WORKERS_S3: Final = "workers → S3"
LINKS: Final = (
    SOURCE,
    MANAGER_MONGODB,
    MANAGER_RABBITMQ,
    MANAGER_REDIS,
    WORKERS_MONGODB,
    WORKERS_RABBITMQ,
    WORKERS_S3,
)
EVERYTHING: Final = tuple(product(LINKS, Kind))

PACE_SECONDS: Final = 0.25
"""A job so often, whatever happens, while fewer than the following are active."""
MOST_ACTIVE: Final = 60
"""More than come in the longest fault: a machine that is too slow for the pace would only pile up
jobs, and what is measured would be that."""
CALLERS: Final = 16
RECOVERY_SECONDS: Final = 90.0
SCHEMA_EVERY: Final = 5
"""The manager needs Redis for schemas, for jobs it does not."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault that one link met, and what came of it."""

    link: str
    fault: Fault
    hold_seconds: float
    met: int
    """How often it was felt."""
    recovery_seconds: float
    """From its end to the next job that completed."""
    drained_seconds: float
    """From its end until no job was left that was active then."""


@contextmanager
def proxied(
    cluster: Cluster, shop: SqlAddress, redis_port: int, *, seed: int
) -> Iterator[tuple[dict[str, ThreadedProxy], Cluster, Cluster]]:
    """A proxy for each link; the same cluster as its manager and as its workers reach it."""
    mongo, s3 = urlsplit(cluster.mongo_uri), urlsplit(cluster.s3.endpoint)
    rabbit = broker.address_of(cluster.amqp_url)
    servers = {
        SOURCE: (shop.host, shop.port),
        MANAGER_MONGODB: (mongo.hostname or "127.0.0.1", mongo.port or 27017),
        MANAGER_RABBITMQ: (rabbit.host, rabbit.port),
        MANAGER_REDIS: ("127.0.0.1", redis_port),
        WORKERS_S3: (s3.hostname or "127.0.0.1", s3.port or 80),
    }
    servers |= {WORKERS_MONGODB: servers[MANAGER_MONGODB]}
    servers |= {WORKERS_RABBITMQ: servers[MANAGER_RABBITMQ]}
    with ExitStack() as stack:
        proxies = {
            link: stack.enter_context(threaded_proxy(*servers[link], seed=seed)) for link in LINKS
        }

        def seen_by(mongo_link: str, rabbit_link: str, **changes: str) -> Cluster:
            environment = {
                "MONGO_URI": through(cluster.mongo_uri, proxies[mongo_link].port),
                "RABBITMQ_HOST": "127.0.0.1",
                "RABBITMQ_PORT_AMQP": str(proxies[rabbit_link].port),
                **changes,
            }
            return replace(cluster, changes={**cluster.changes, **environment})

        yield (
            proxies,
            seen_by(
                MANAGER_MONGODB,
                MANAGER_RABBITMQ,
                REDIS_HOST="127.0.0.1",
                REDIS_PORT=str(proxies[MANAGER_REDIS].port),
            ),
            seen_by(
                WORKERS_MONGODB,
                WORKERS_RABBITMQ,
                OBJECT_STORAGE_ENDPOINT=f"http://127.0.0.1:{proxies[WORKERS_S3].port}",
            ),
        )


@dataclass
class SteadyLoad:
    """Asks for a job at every tick, on threads of its own: one that waits holds up no other."""

    api: Api
    connection_id: str
    chance: random.Random
    active_count: Callable[[], int]
    accepted: list[str] = field(default_factory=list)
    answers: "Counter[str]" = field(default_factory=Counter)
    """By what was asked for, and the status."""
    unanswered: list[str] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        with ThreadPoolExecutor(1, thread_name_prefix="steady load") as ticking:
            load = ticking.submit(self._tick)
            try:
                yield
            finally:
                self._enough.set()
            load.result()

    def _tick(self) -> None:
        asked: list[Future[None]] = []
        with ThreadPoolExecutor(CALLERS, thread_name_prefix="caller") as pool:
            for number in count():
                if self._enough.wait(PACE_SECONDS):
                    break
                if self.active_count() >= MOST_ACTIVE:
                    continue
                asked.append(pool.submit(self._post, number, self._fields(number)))
                if number % SCHEMA_EVERY == 0:
                    asked.append(pool.submit(self._ask_schema))
        for each in asked:
            each.result()

    def _fields(self, number: int) -> Mapping[str, Any]:
        """Most are quick; some take 2 s, some make an upload of three parts."""
        if number % 20 == 7:
            return {"sales_db": {"big_orders": ["id", "note", "late"]}}
        table = "slow_orders" if self.chance.random() < 0.2 else "orders"
        return {"sales_db": {table: ["id"]}}

    def _post(self, number: int, fields: Mapping[str, Any]) -> None:
        answer = self._asked("job", lambda: self.api.post_job(fields, number=number))
        # 200 is said of a job that stands already: the request's own, where the answer of the
        # record store was lost and the request was judged anew
        if answer is not None and answer.status in (200, 202):
            self.accepted.append(answer.body["jobId"])

    def _ask_schema(self) -> None:
        path = f"/v1/management/connections/{self.connection_id}/schema"
        self._asked("schema", lambda: self.api.call("GET", path))

    def _asked(self, what: str, ask: Callable[[], Answer]) -> Answer | None:
        """A client gives up after 30 s."""
        try:
            answer = ask()
        except OSError as failure:
            self.unanswered.append(f"{what}: {failure!r}")
            return None
        self.answers[f"{what} {answer.status}"] += 1
        return answer


def run_steps(
    proxies: Mapping[str, ThreadedProxy],
    records: Records,
    chance: random.Random,
    plan: Sequence[tuple[str, Kind]],
    *,
    hold_seconds: float,
) -> list[Step]:
    """One after the other, each after all that waited for the former one has ended."""
    steps = []
    for link, kind in plan:
        fault = drawn(kind, chance)
        held_seconds = hold_seconds * chance.uniform(0.75, 1.25)
        proxies[link].turn(fault)
        time.sleep(held_seconds)  # the fault's length is what is tried
        met = proxies[link].met
        proxies[link].turn(None)
        ended_at = time.monotonic()
        completed, waiting = records.completed_count(), records.active_ids()
        go_on = partial(_more_are_completed, records, completed)
        recovery_seconds = _seconds_until(ended_at, go_on)
        drained_seconds = _seconds_until(ended_at, partial(_have_ended, records, waiting))
        steps.append(Step(link, fault, held_seconds, met, recovery_seconds, drained_seconds))
        print(
            f"{link}: {fault}, for {held_seconds:.1f} s, met {met} times:"
            f" recovered after {recovery_seconds:.2f} s, drained after {drained_seconds:.2f} s",
            flush=True,
        )
    return steps


def _more_are_completed(records: Records, count: int) -> bool:
    return records.completed_count() > count


def _have_ended(records: Records, job_ids: set[str]) -> bool:
    return not job_ids & records.active_ids()


def _seconds_until(began_at: float, holds: Callable[[], bool]) -> float:
    eventually_sync(holds, deadline_seconds=RECOVERY_SECONDS, what="jobs go on")
    return time.monotonic() - began_at
