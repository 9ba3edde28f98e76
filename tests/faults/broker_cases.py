"""The broker refuses, returns, closes: what each does to jobs on their way and to their events."""

import json
import re
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final
from uuid import uuid4

from aiormq import Channel

from tests.e2e import broker
from tests.e2e.cluster import Cluster
from tests.faults.wire_rig import QUICK, SLOW, Rig
from tests.servers.vhosts import COMMAND_SECONDS
from tests.servers.waiting import eventually_sync

FELT_SECONDS: Final = 120.0
RECOVERY_SECONDS: Final = 150.0
"""Tries that failed for long are up to half a minute apart, and a breaker is open as long."""
JOBS: Final = 2
"""That come while it holds, beside one that runs already."""


class BrokerFault(StrEnum):
    WORK_REFUSED = "the work queue takes nothing: nack"
    WORK_RETURNED = "the work queue is deleted: returned, and its consumer cancelled"
    EVENT_REFUSED = "the subscriber's queue takes nothing: nack"
    EVENT_RETURNED = "no queue is bound for events: returned"
    EVENT_CHANNEL_CLOSED = "the events' exchange is deleted: 404 closes the channel"
    CONNECTIONS_CLOSED = "every connection is closed by the broker"


NEEDS_CONTROL: Final = frozenset(
    {BrokerFault.WORK_REFUSED, BrokerFault.EVENT_REFUSED, BrokerFault.CONNECTIONS_CLOSED}
)
"""Those that AMQP has no words for."""
DROPPING: Final = frozenset({BrokerFault.WORK_REFUSED, BrokerFault.EVENT_REFUSED})
"""A queue that may hold nothing drops what it holds, too: nothing may lie there by then."""
TOLD_AS: Final[Mapping[BrokerFault, tuple[str, str]]] = {
    BrokerFault.WORK_REFUSED: ("work", "queue_full"),
    BrokerFault.WORK_RETURNED: ("work", "unroutable"),
    BrokerFault.EVENT_REFUSED: ("event", "queue_full"),
    BrokerFault.EVENT_RETURNED: ("event", "unroutable"),
    BrokerFault.EVENT_CHANNEL_CLOSED: ("event", "queue_missing"),
}
"""What ``fetcher_queue_publish_total`` counts: kind and result."""


@dataclass(frozen=True, slots=True)
class BrokerEnding:
    fault: BrokerFault
    felt: float
    """How often it was counted by both processes."""
    seconds: float
    """From its end until each job has ended and is told."""


@dataclass(frozen=True, slots=True)
class Control:
    """``rabbitmqctl``, for one cluster's objects and its user's connections."""

    command: str
    cluster: Cluster

    def say(self, *words: str) -> None:
        done = subprocess.run(
            [self.command, "-q", *words],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"

    @contextmanager
    def full(self, queue: str) -> Iterator[None]:
        """The queue takes nothing, and says so."""
        at = ("-p", broker.address_of(self.cluster.amqp_url).vhost)
        takes_nothing = json.dumps({"max-length": 0, "overflow": "reject-publish"})
        name, pattern = f"full-{queue}", f"^{re.escape(queue)}$"
        self.say("set_policy", *at, "--apply-to", "queues", name, pattern, takes_nothing)
        try:
            yield
        finally:
            self.say("clear_policy", *at, name)

    @contextmanager
    def own_user(self) -> Iterator[str]:
        """A user of the same place, whose connections are known by it; its password is its name."""
        at = broker.address_of(self.cluster.amqp_url)
        name = f"fetcher-t-{uuid4().hex}"
        self.say("add_user", name, name)
        try:
            self.say("set_permissions", "-p", at.vhost, name, ".*", ".*", ".*")
            yield name
        finally:
            self.say("delete_user", name)

    def close_connections(self, user: str) -> None:
        self.say("close_all_user_connections", user, "the test asked for it")


def run_broker_case(
    rig: Rig, fault: BrokerFault, control: Control, *, user: str = "", tries: int = 1
) -> BrokerEnding:
    """Whatever it is, jobs or events wait, and all that was asked for ends once it is over: when it
    was counted ``tries`` times."""
    job_ids: list[str] = []
    if fault not in DROPPING:
        [running] = rig.post(SLOW, f"{fault}, running")
        job_ids.append(running.body["jobId"])
        rig.api.wait_for_status(job_ids[0], "processing")
    counted = count_of(rig, fault)
    with broken(rig, fault, control, user):
        for number in range(JOBS):
            [answer] = rig.post(QUICK, f"{fault}, {number}")
            assert answer.status == 202, answer.body
            job_ids.append(answer.body["jobId"])
        if fault in TOLD_AS:
            eventually_sync(
                lambda: count_of(rig, fault) >= counted + tries,
                deadline_seconds=FELT_SECONDS,
                what=f"{fault} is counted",
            )
        rig.hear()
        assert (
            fault.name.startswith("WORK")
            or fault not in TOLD_AS
            or (not rig.said.keys() & set(job_ids))
        )
        felt = count_of(rig, fault) - counted
    began_at = time.monotonic()
    for job_id in job_ids:
        job = rig.ended(job_id, deadline_seconds=RECOVERY_SECONDS)
        assert (job["status"], job["takeovers"]) == ("completed", 0)
    return BrokerEnding(fault, felt, time.monotonic() - began_at)


@contextmanager
def broken(rig: Rig, fault: BrokerFault, control: Control, user: str) -> Iterator[None]:
    """Until the block ends; then the broker is as it was."""
    cluster = rig.cluster
    match fault:
        case BrokerFault.WORK_REFUSED:
            with control.full(cluster.work_queue):
                yield
        case BrokerFault.EVENT_REFUSED:
            with control.full(cluster.event_queue):
                yield
        case BrokerFault.CONNECTIONS_CLOSED:
            control.close_connections(user)
            yield
        case _:
            broker.on_channel(cluster.amqp_url, partial(TAKEN_AWAY[fault], cluster))
            try:
                yield
            finally:
                cluster.declare()


async def _without_work_queue(cluster: Cluster, channel: Channel) -> None:
    await channel.queue_delete(cluster.work_queue)


async def _without_binding(cluster: Cluster, channel: Channel) -> None:
    for key in broker.EVENT_KEYS:
        await channel.queue_unbind(cluster.event_queue, cluster.exchange, key)


async def _without_exchange(cluster: Cluster, channel: Channel) -> None:
    await channel.exchange_delete(cluster.exchange)


TAKEN_AWAY: Final[Mapping[BrokerFault, Callable[[Cluster, Channel], Awaitable[None]]]] = {
    BrokerFault.WORK_RETURNED: _without_work_queue,
    BrokerFault.EVENT_RETURNED: _without_binding,
    BrokerFault.EVENT_CHANNEL_CLOSED: _without_exchange,
}
"""What :meth:`Cluster.declare` makes again."""


def count_of(rig: Rig, fault: BrokerFault) -> float:
    """What both processes count of it so far."""
    if fault not in TOLD_AS:
        return 0.0
    kind, result = TOLD_AS[fault]
    line = f'fetcher_queue_publish_total{{kind="{kind}",result="{result}"}} '
    return sum(
        float(each.removeprefix(line))
        for api in (rig.api, rig.worker)
        for each in api.text("/metrics").splitlines()
        if each.startswith(line)
    )
