"""Commands that open one tenant's stores: `--tenant`, and what the Tenant Manager says of it."""

import json
import sys
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
import pytest
import trio
from mypy_boto3_s3 import S3Client

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.adapters.mongo import MongoRecords, open_mongo_records
from fetcher.bridge import open_asyncio
from fetcher.cli import main
from fetcher.domain.work_message import work_headers
from fetcher.ports import OutgoingMessage
from tests.contract.dead_letters.conftest import publish_all
from tests.contract.queue.work_queues import broker_address
from tests.contract.records.builders import a_job
from tests.integration.cli.dlq import KEY, SIGNER, letter_of
from tests.servers.addresses import S3Access
from tests.servers.tenant_manager import (
    TenantManagerDouble,
    broker_at,
    mongo_at,
    status,
)
from tests.servers.vhosts import Vhost
from tests.unit.commands.test_rotate_credentials import NEW, OLD, sealed
from tests.unit.crypto import vectors

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a tenant's things lie."""

    tenant_id: str
    database: str
    vhost: Vhost
    mongo_uri: str

    @asynccontextmanager
    async def records(self) -> AsyncIterator[MongoRecords]:
        async with (
            open_asyncio(pytest.fail),
            open_mongo_records(self.mongo_uri, self.database, allow_plaintext=True) as records,
        ):
            yield records


@pytest.fixture
def tenant(
    tenant_manager: TenantManagerDouble,
    mongo_uri: str,
    mongo_database: Callable[[], str],
    vhost: Callable[[], Vhost],
) -> Callable[[str], Place]:
    """Makes a tenant with a database and a virtual host of its own."""

    def make(tenant_id: str) -> Place:
        place = Place(
            tenant_id=tenant_id, database=mongo_database(), vhost=vhost(), mongo_uri=mongo_uri
        )
        tenant_manager.put(
            tenant_id,
            mongo=mongo_at(mongo_uri, place.database),
            broker=broker_at(place.vhost.url, place.vhost.name),
        )
        return place

    return make


@pytest.fixture
def bucket(s3_bucket: Callable[[], str]) -> str:
    return s3_bucket()


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tenant_manager: TenantManagerDouble,
    s3_access: S3Access,
    bucket: str,
) -> Run:
    """A command of a process with tenants: its exit code and what it printed."""
    for name, value in {
        "APP_ENC_KEY": KEY,
        "DEPLOYMENT_MODE": "local",
        "ENVIRONMENT_NAME": "staging",
        "MULTI_TENANT_ENABLED": "true",
        "MULTI_TENANT_URL": tenant_manager.address,
        "MULTI_TENANT_ALLOW_INSECURE_HTTP": "true",
        "MULTI_TENANT_SERVICE_API_KEY": tenant_manager.api_key,
        "MULTI_TENANT_REDIS_HOST": "127.0.0.1",
        "ALLOW_INSECURE_TLS": "true",
        "OBJECT_STORAGE_BUCKET": bucket,
        "OBJECT_STORAGE_ENDPOINT": s3_access.endpoint,
        "OBJECT_STORAGE_ACCESS_KEY_ID": s3_access.access_key,
        "OBJECT_STORAGE_SECRET_KEY": s3_access.secret_key,
        "OBJECT_STORAGE_USE_PATH_STYLE": "true",
        "OBJECT_STORAGE_KEY_PREFIX": "fx/",
        "RABBITMQ_JOB_EVENTS_EXCHANGE": "fetcher.job.events",
        "STREAMING_ENABLED": "true",
        "STREAMING_CLOUDEVENTS_SOURCE": "//test",
    }.items():
        monkeypatch.setenv(name, value)

    def command(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["fetcher", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        told = capsys.readouterr()
        return Ended(ended.value.code, told.out, told.err)

    return command


COMMANDS = (
    ("topology", "verify"),
    ("topology", "declare"),
    ("dlq", "list"),
    ("dlq", "show", "1"),
    ("dlq", "export", "letters.jsonl"),
    ("dlq", "redrive"),
    ("dlq", "purge", "--yes"),
    ("audit", "list"),
    ("keys", "rotate"),
    ("open-result", "fx/acme-7/external-data/x.json"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_wants_to_know_whose_stores(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert "--tenant: required with MULTI_TENANT_ENABLED=true" in ended.err
    ended = run(*command, "--tenant=a:b")
    assert (ended.code, ended.out) == (2, "")
    assert "--tenant: no tenant can have this id" in ended.err
    monkeypatch.setenv("MULTI_TENANT_ENABLED", "false")
    for name in ("MONGO_URI", "RABBITMQ_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECORD_STORE", "sqlite")
    monkeypatch.setenv("QUEUE_BACKEND", "memory")
    ended = run(*command, "--tenant=acme-7")
    assert (ended.code, "MULTI_TENANT_ENABLED is not true" in ended.err) == (2, True)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_the_tenant_manager_says_against_it_ends_a_command(
    run: Run, tenant_manager: TenantManagerDouble, command: tuple[str, ...]
) -> None:
    ended = run(*command, "--tenant=acme-7")
    assert (ended.code, "tenant not found: acme-7" in ended.err) == (1, True)
    tenant_manager.put("acme-7", mongo=None, broker=None, status="suspended")
    ended = run(*command, "--tenant=acme-7")
    assert (ended.code, "tenant service is suspended" in ended.err) == (1, True)
    tenant_manager.fail(status(502))
    ended = run(*command, "--tenant=acme-7")
    assert (ended.code, "the Tenant Manager: tenant manager returned" in ended.err) == (1, True)


def test_a_tenants_broker_is_declared_and_nobody_elses(
    run: Run, tenant: Callable[[str], Place]
) -> None:
    for each in ("acme-7", "beta-2"):
        tenant(each)
    assert run("topology", "declare", "--tenant=acme-7", "--bucket").code == 0
    ended = run("topology", "verify", "--tenant=acme-7", "--json")
    statuses = {each["kind"]: each["status"] for each in json.loads(ended.out)["objects"]}
    assert (ended.code, statuses["queue"], statuses["bucket rule"]) == (0, "ok", "ok")
    ended = run("topology", "verify", "--tenant=beta-2", "--json")
    objects = json.loads(ended.out)["objects"]
    assert {each["status"] for each in objects if each["kind"] == "queue"} == {"missing"}
    assert ended.code == 1


def test_each_tenant_has_its_own_rule_in_the_bucket_and_all_of_them_one(
    run: Run,
    tenant: Callable[[str], Place],
    monkeypatch: pytest.MonkeyPatch,
    s3_client: S3Client,
    bucket: str,
) -> None:
    monkeypatch.setenv("RESULT_RETENTION_DAYS", "30")
    longest = "x" * 256
    tenants = ("acme-7", "beta-2", longest)
    for each in tenants:
        tenant(each)
        assert run("topology", "declare", f"--tenant={each}", "--bucket").code == 0
    for each in tenants:
        assert run("topology", "verify", f"--tenant={each}").code == 0
    rules = s3_client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert sorted(rule["Filter"]["Prefix"] for rule in rules) == [
        "fx/",
        *(f"fx/{each}/external-data/" for each in tenants),
    ]
    assert max(len(rule["ID"]) for rule in rules) <= 255


def letter_for(tenant_id: str) -> OutgoingMessage:
    job = a_job()
    letter = letter_of(job)
    signed = SIGNER.headers(
        tenant=tenant_id, body=letter.body, exchange="", routing_key="work", timestamp=1773480413
    )
    headers = {**letter.headers, **work_headers(job, tenant=tenant_id), **signed}
    return OutgoingMessage(
        exchange=letter.exchange, routing_key=letter.routing_key, body=letter.body, headers=headers
    )


def test_a_tenants_dead_letters_are_seen_and_purged_and_nobody_elses(
    run: Run, tenant: Callable[[str], Place]
) -> None:
    acme, beta = tenant("acme-7"), tenant("beta-2")

    async def fill() -> None:
        async with open_asyncio(lambda _: None):
            for place in (acme, beta):
                connection = BrokerConnection(broker_address(place.vhost.url), name="test")
                letters = [letter_for("acme-7"), letter_for("beta-2")]
                await publish_all(connection, TopologyNames().dead_letter_queue, letters)
                await connection.aclose()

    for place in (acme, beta):
        assert run("topology", "declare", f"--tenant={place.tenant_id}").code == 0
    trio.run(fill)
    for place in (acme, beta):
        ended = run("dlq", "list", "--json", f"--tenant={place.tenant_id}")
        found = json.loads(ended.out)
        assert (ended.code, found["total"]) == (0, 2)
        assert sorted(each["genuine"] for each in found["letters"]) == [False, True], (
            "what was signed for another tenant is not genuine here"
        )
    assert run("dlq", "purge", "--yes", "--json", "--tenant=acme-7").out == '{"purged": 2}\n'
    assert json.loads(run("dlq", "list", "--json", "--tenant=acme-7").out)["total"] == 0
    assert json.loads(run("dlq", "list", "--json", "--tenant=beta-2").out)["total"] == 2
    entries = run("audit", "list", "--json", "--tenant=acme-7").out
    assert json.loads(entries)["action"] == "dlq.purged"
    assert run("audit", "list", "--json", "--tenant=beta-2").out == ""


def test_a_look_makes_nothing_in_a_tenants_database(
    run: Run, tenant: Callable[[str], Place], mongo_uri: str
) -> None:
    place = tenant("acme-7")
    assert run("audit", "list", "--tenant=acme-7").code == 0
    with pymongo.MongoClient[dict[str, Any]](mongo_uri) as plain:
        assert plain[place.database].list_collection_names() == []


def test_a_tenants_credentials_are_rotated_and_nobody_elses(
    run: Run, tenant: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, beta = tenant("acme-7"), tenant("beta-2")
    for name, value in {
        "APP_ENC_KEY": NEW,
        "APP_ENC_KEY_VERSION": "2",
        "APP_ENC_KEY_PREVIOUS": f"1={OLD}",
    }.items():
        monkeypatch.setenv(name, value)

    async def versions(place: Place) -> list[str]:
        async with place.records() as records:
            held = await records.connections.find_by_config_names(["a_db"])
            return [each.encryption_key_version for each in held]

    async def hold(place: Place) -> None:
        async with place.records() as records:
            await records.connections.insert(sealed("a_db"))

    for place in (acme, beta):
        trio.run(hold, place)
    ended = run("keys", "rotate", "--json", "--tenant=acme-7")
    assert (ended.code, json.loads(ended.out)["rotated"]) == (0, ["a_db"])
    assert (trio.run(versions, acme), trio.run(versions, beta)) == (["2"], ["1"])


def test_only_a_tenants_own_results_are_opened(
    run: Run,
    tenant: Callable[[str], Place],
    s3_client: S3Client,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant("acme-7")
    monkeypatch.setenv("APP_ENC_KEY", vectors.APP_ENC_KEY)
    expected = [f"--hmac={vectors.RESULT_HMAC}", "--size=103"]
    key = f"fx/acme-7/external-data/{uuid4()}.json"
    others = f"fx/beta-2/external-data/{uuid4()}.json"
    for each in (key, others):
        s3_client.put_object(Bucket=bucket, Key=each, Body=vectors.RESULT_OBJECT)
    ended = run("open-result", key, *expected, "--tenant=acme-7")
    assert (ended.code, len(ended.out)) == (0, 103)
    ended = run("open-result", others, *expected, "--tenant=acme-7")
    assert (ended.code, ended.out) == (1, "")
    assert f"open-result: object not found: {others}" in ended.err


def parts_of(archive: Path) -> dict[str, Any]:
    with tarfile.open(archive) as opened:
        found = {Path(each.name).stem: opened.extractfile(each) for each in opened.getmembers()}
        return {name: json.load(file) for name, file in found.items() if file is not None}


OF_ONE_TENANT = ("jobs", "failures", "breakers", "queues")


def test_a_diagnosis_looks_at_the_tenant_that_is_named_and_changes_nothing(
    run: Run,
    tenant: Callable[[str], Place],
    mongo_uri: str,
    tmp_path: Path,
) -> None:
    acme = tenant("acme-7")
    assert run("topology", "declare", "--tenant=acme-7").code == 0
    archive = tmp_path / "acme.tar.gz"
    assert run("diagnose", "--output", str(archive), "--tenant=acme-7").code == 0
    parts = parts_of(archive)
    assert parts["summary"]["tenant"] == "acme-7"
    assert {name: parts[name]["ok"] for name in OF_ONE_TENANT} == dict.fromkeys(OF_ONE_TENANT, True)
    probes = parts["probes"]["dependencies"]
    assert {name: probes[name]["status"] for name in ("mongodb", "rabbitmq", "s3")} == {
        "mongodb": "up",
        "rabbitmq": "up",
        "s3": "up",
    }
    with pymongo.MongoClient[dict[str, Any]](mongo_uri) as plain:
        assert plain[acme.database].list_collection_names() == []


def test_a_diagnosis_for_nobody_takes_no_shared_place_for_a_tenants(
    run: Run, tmp_path: Path
) -> None:
    archive = tmp_path / "nobody.tar.gz"
    assert run("diagnose", "--output", str(archive)).code == 0
    parts = parts_of(archive)
    for name in OF_ONE_TENANT:
        assert parts[name]["failure"]["text"].startswith("--tenant: with tenants"), name
    assert parts["probes"]["dependencies"]["rabbitmq"]["status"] == "unasked"
    assert parts["probes"]["dependencies"]["s3"]["status"] == "up"
