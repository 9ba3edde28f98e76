"""The record store, the bucket or the broker fails one message: each write of a job's life, each
request of an upload. Whatever it is, there is one job, one object, one event.

``FETCHER_TEST_SEED`` draws the few of a small run. ``FETCHER_TEST_FAULTS_DOCUMENT`` names the page
that a whole one writes its tables into.
"""

import os
import random
import secrets
from pathlib import Path

import pytest
from mypy_boto3_s3 import S3Client

from fetcher.adapters.breaker import FAILURES_TO_OPEN
from tests.e2e.cluster import Cluster
from tests.faults.amqp_cases import AMQP_CASES, run_amqp_case
from tests.faults.broker_cases import NEEDS_CONTROL, BrokerFault, Control, run_broker_case
from tests.faults.matrix_outcome import write_into
from tests.faults.mongo_cases import MongoCase, run_mongo_case, sweep
from tests.faults.mongo_proxy import WriteFault
from tests.faults.s3_cases import LONG_S3_CASES, S3_CASES, run_s3_case
from tests.faults.wire_rig import MANAGER, WORKER, rig
from tests.faults.wire_tables import amqp_table, broker_table, marks, mongo_table, s3_table
from tests.scale import IS_NIGHTLY
from tests.servers.addresses import SqlAddress

WRITES = (
    (MANAGER, "insert into `job`"),
    (MANAGER, "insert into `audit`"),
    (MANAGER, "mark as dispatched"),
    (WORKER, "become processing"),
    (WORKER, "renew the lease"),
    (WORKER, "become completed"),
    (WORKER, "claim its event"),
    (WORKER, "mark its event as published"),
)
"""At least these are in a job's life."""
ENOUGH_TO_OPEN = FAILURES_TO_OPEN + 1
"""So often it is felt before it ends: what counts as the broker's failure has opened a breaker."""
whole = pytest.mark.skipif(not IS_NIGHTLY, reason="all of it takes half an hour: make faults")


def drawn_chance() -> random.Random:
    seed = int(os.environ.get("FETCHER_TEST_SEED") or secrets.randbits(32))
    print(f"FETCHER_TEST_SEED={seed}")
    return random.Random(seed)  # noqa: S311 - faults, no secret


def written(place: str, text: str) -> None:
    print(text)
    if document := os.environ.get("FETCHER_TEST_FAULTS_DOCUMENT"):
        begin, end = marks(place)
        write_into(Path(document), text, begin=begin, end=end)


def test_a_few_drawn_messages_fail_and_nothing_is_lost(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, rabbitmqctl: str
) -> None:
    chance = drawn_chance()
    write = MongoCase(*chance.choice(WRITES), chance.choice(list(WriteFault)))
    request = chance.choice(S3_CASES)
    said = chance.choice([each for each in BrokerFault if each not in NEEDS_CONTROL])
    word = chance.choice(AMQP_CASES)
    repeats = chance.random() < 0.5
    print(write, f"repeated: {repeats};", request, word, said)
    with rig(cluster, shop, s3_client, repeats=repeats) as it:
        print(run_mongo_case(it, write), run_s3_case(it, request))
        print(run_amqp_case(it, word), run_broker_case(it, said, Control(rabbitmqctl, cluster)))


@whole
@pytest.mark.parametrize("repeats", [True, False])
def test_each_write_of_a_jobs_record_may_fail(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, repeats: bool
) -> None:
    endings = []
    with rig(cluster, shop, s3_client, repeats=repeats) as it:
        for ending in sweep(it):
            print(ending, flush=True)
            endings.append(ending)
    assert {(each.case.process, each.case.what) for each in endings} >= set(WRITES)
    written("mongodb, repeated" if repeats else "mongodb, once", mongo_table(endings))


@whole
def test_each_request_to_the_bucket_may_fail(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client
) -> None:
    with rig(cluster, shop, s3_client, repeats=True) as it:
        written("s3", s3_table([run_s3_case(it, each) for each in (*S3_CASES, *LONG_S3_CASES)]))


@whole
def test_each_word_with_the_broker_may_be_lost(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client
) -> None:
    with rig(cluster, shop, s3_client, repeats=True) as it:
        endings = []
        for each in AMQP_CASES:
            endings.append(run_amqp_case(it, each))
            print(endings[-1], flush=True)
    written("amqp", amqp_table(endings))


@whole
def test_the_broker_may_refuse_return_and_close(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, rabbitmqctl: str
) -> None:
    control = Control(rabbitmqctl, cluster)
    with (
        control.own_user() as user,
        rig(cluster, shop, s3_client, repeats=True, user=user) as it,
    ):
        endings = []
        for each in BrokerFault:
            endings.append(run_broker_case(it, each, control, user=user, tries=ENOUGH_TO_OPEN))
            print(endings[-1], flush=True)
    written("broker", broker_table(endings))
