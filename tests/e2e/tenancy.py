"""Managers and workers as processes with tenants: a Tenant Manager's double, and for each tenant a
real virtual host and a real database."""

import base64
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE
from fetcher.crypto.keys import KeyRing
from tests.e2e import broker
from tests.e2e.cluster import JOB_SECONDS, KEY, ROOT, START_SECONDS, Api, common_settings
from tests.servers.addresses import S3Access
from tests.servers.processes import FetcherProcess, free_port, running
from tests.servers.tenant_manager import TenantManagerDouble, broker_at, mongo_at
from tests.servers.vhosts import Vhost
from tests.servers.waiting import eventually_sync

EVENT_QUEUE = "subscriber"
EXCHANGE = "fetcher.job.events"
WORK_QUEUE = "fetcher.extract-external-data.queue"
ENVIRONMENT_NAME = "staging"


def token_of(tenant_id: object, **claims: object) -> str:
    """A token as nobody has signed it: whoever verifies it is another service."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part({'tenantId': tenant_id, **claims})}.{part('x')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPlace:
    """Where one tenant's things lie."""

    tenant_id: str
    vhost: Vhost
    database: str

    def letters(self, count: int) -> list[broker.Message]:
        """As :meth:`events`, of the dead letters."""
        return self._taken(DEAD_LETTER_QUEUE, count, JOB_SECONDS)

    def events(self, count: int, *, deadline_seconds: float = JOB_SECONDS) -> list[broker.Message]:
        """Taken out of the tenant's queue, once there are so many."""
        return self._taken(EVENT_QUEUE, count, deadline_seconds)

    def _taken(self, queue: str, count: int, deadline_seconds: float) -> list[broker.Message]:
        found: list[broker.Message] = []

        def read() -> bool:
            found.extend(broker.read_all(self.vhost.url, queue))
            return len(found) >= count

        eventually_sync(read, deadline_seconds=deadline_seconds, what=f"{count} in {queue}")
        return found


@dataclass(kw_only=True)
class TenantProcesses:
    """Processes over a Tenant Manager and tenants of one's own; ``changes`` are more settings."""

    folder: Path
    manager_double: TenantManagerDouble
    mongo_uri: str
    redis_url: str
    s3: S3Access
    bucket: str
    changes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = KeyRing.from_text(KEY).current

    def tell(self, place: TenantPlace, **changes: Any) -> None:
        """Tell the Tenant Manager of it, as it is or with changes (see its ``put``)."""
        told = {
            "mongo": mongo_at(self.mongo_uri, place.database),
            "broker": broker_at(place.vhost.url, place.vhost.name),
            **changes,
        }
        self.manager_double.put(place.tenant_id, **told)

    def publish(self, tenant_id: str, event_type: str, **payload: object) -> int:
        """An event of the Tenant Manager; how many heard it."""
        event = {
            "event_id": "0197ca00-1111-7222-8333-444455556666",
            "event_type": event_type,
            "timestamp": "2026-03-04T10:00:00Z",
            "tenant_id": tenant_id,
            "environment": ENVIRONMENT_NAME,
            "payload": {"service_name": "fetcher", **payload},
        }
        with redis.Redis.from_url(self.redis_url) as client:
            heard = client.publish(f"tenant-events:{ENVIRONMENT_NAME}:", json.dumps(event))
        assert isinstance(heard, int)
        return heard

    def environment(self) -> dict[str, str]:
        host, _, port = self.redis_url.partition("//")[2].partition("/")[0].rpartition(":")
        return {
            "APP_ENC_KEY": KEY,
            "MULTI_TENANT_ENABLED": "true",
            "MULTI_TENANT_URL": self.manager_double.address,
            "MULTI_TENANT_ALLOW_INSECURE_HTTP": "true",
            "MULTI_TENANT_SERVICE_API_KEY": self.manager_double.api_key,
            "MULTI_TENANT_REDIS_HOST": host.rpartition("@")[2],
            "MULTI_TENANT_REDIS_PORT": port,
            "MULTI_TENANT_RECONCILE_INTERVAL_SEC": "1",
            "ENVIRONMENT_NAME": ENVIRONMENT_NAME,
            "RABBITMQ_JOB_EVENTS_EXCHANGE": EXCHANGE,
            # where the test's source is; the guard is on
            "DATASOURCE_HOST_ALLOW": "127.0.0.1",
            **common_settings(self.s3, self.bucket),
            **self.changes,
        }

    @contextmanager
    def process(
        self, role: str, *, module: str = "fetcher", **changes: str
    ) -> Iterator[tuple[FetcherProcess, "TenantApi"]]:
        """Once it is healthy. A worker's API is its health port."""
        port = free_port()
        environment = {
            **self.environment(),
            "SERVER_ADDRESS": f"127.0.0.1:{port}",
            "HEALTH_PORT": str(port if role == "worker" else free_port()),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}",
            **changes,
        }
        command = [sys.executable, "-m", module, f"--role={role}"]
        with running(command, environment=environment, folder=self.folder, name=role) as process:
            process.wait_until_answers(
                f"http://127.0.0.1:{port}/health", deadline_seconds=START_SECONDS
            )
            yield process, TenantApi(port)


@dataclass(kw_only=True)
class Tenancy(TenantProcesses):
    """One test's own, with tenants as it needs them."""

    new_database: Callable[[], str]
    new_vhost: Callable[..., Vhost]

    def add(self, name: str) -> TenantPlace:
        """A tenant with a virtual host and a database of its own, known to the Tenant Manager. Its
        id begins with the name; tests that run side by side share the channel of events."""
        place = TenantPlace(
            tenant_id=f"{name}-{secrets.token_hex(4)}",
            vhost=self.new_vhost(),
            database=self.new_database(),
        )
        broker.declare(
            place.vhost.url, work_queue=WORK_QUEUE, exchange=EXCHANGE, event_queue=EVENT_QUEUE
        )
        broker.declare_dead_letters(place.vhost.url)
        self.tell(place)
        return place


@dataclass(frozen=True, slots=True)
class TenantApi:
    port: int

    def of(self, tenant_id: object, **claims: object) -> Api:
        return Api(self.port, token_of(tenant_id, **claims))

    @property
    def nobody(self) -> Api:
        return Api(self.port)


def result_of(event: broker.Message) -> Mapping[str, Any]:
    result: Mapping[str, Any] = json.loads(event.body)["result"]
    return result
