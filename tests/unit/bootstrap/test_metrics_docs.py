"""docs/observability.md names every metric that a process serves, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetcher.actors.lifecycle import Lifecycle
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.process_roster import ProcessRoster
from fetcher.bootstrap.roster import Roster
from fetcher.bootstrap.tenancy import process
from fetcher.bridge import open_asyncio
from fetcher.ports import UNTRACED, ProbeResult, ProbeStatus
from fetcher.settings import Role, Settings
from tests.metric_docs import Family, documented

FORBIDDEN_LABELS = {"tenant", "tenant_id", "connection", "config_name", "product", "host", "table"}

OUTSIDE = {
    "mongo_uri": "mongodb://store.test/",
    "mongo_name": "fetcher",
    "rabbitmq_host": "broker.test",
    "redis_host": "redis.test",
    "object_storage_bucket": "results",
    "allow_insecure_tls": "true",
    "app_enc_key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}

WITH_TENANTS = {
    **{name: text for name, text in OUTSIDE.items() if not name.startswith(("mongo", "rabbit"))},
    "multi_tenant_enabled": "true",
    "multi_tenant_url": "https://tenants.test",
    "multi_tenant_service_api_key": "key",
    "multi_tenant_redis_host": "redis.test",
    "environment_name": "staging",
}

SERVED: dict[tuple[Role, bool], set[str]] = {
    (Role.MANAGER, False): {
        "every process",
        "with MongoDB",
        "with RabbitMQ",
        "manager with Redis",
    },
    (Role.WORKER, False): {
        "every process",
        "with MongoDB",
        "with RabbitMQ",
        "worker",
        "worker with a spool",
    },
    (Role.ALL, True): {"every process", "worker", "worker with a spool"},
}
SERVED_WITH_TENANTS = {
    Role.MANAGER: {"every process", "with MongoDB", "with tenants", "manager with Redis"},
    Role.WORKER: {
        "every process",
        "with MongoDB",
        "with tenants",
        "worker",
        "worker with a spool",
    },
}


def served_families(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            yield name, kind


async def scraped(folder: Path, role: Role, *, embedded: bool) -> str:
    """The families do not wait for what they tell of: nothing is there but the process."""
    changes = {} if embedded else OUTSIDE
    settings = Settings(fetcher_data_dir=folder, **changes)  # type: ignore[arg-type] # texts only
    async with open_asyncio(pytest.fail), open_adapters(settings, role) as adapters:
        return rendered(Roster(settings, role, adapters, Lifecycle()))


def rendered(roster: ProcessRoster) -> str:
    system = roster._system()
    system.readiness_metrics.observe("s3", ProbeResult(status=ProbeStatus.UP, latency_ms=3))
    system.readiness_metrics.set_self_probe("s3", passed=True)
    return system.render_metrics().decode()


@pytest.mark.parametrize(("role", "embedded"), SERVED)
async def test_a_process_serves_what_is_documented_for_it(
    tmp_path: Path, role: Role, embedded: bool
) -> None:
    served = dict(served_families(await scraped(tmp_path, role, embedded=embedded)))
    wanted = {
        each.name: each.kind for each in documented() if each.served_by in SERVED[role, embedded]
    }
    assert served == wanted


async def heard(_: object) -> None:
    """The Redis of tenants' events, as far as the start looks at it."""


@pytest.mark.parametrize("role", SERVED_WITH_TENANTS)
async def test_a_process_with_tenants_serves_what_is_documented_for_it(
    tmp_path: Path, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_refuse_unless_heard", heard)
    settings = Settings(fetcher_data_dir=tmp_path, spool_dir=str(tmp_path), **WITH_TENANTS)  # type: ignore[arg-type] # texts only
    async with (
        open_asyncio(pytest.fail),
        process.open_tenants_roster(settings, role, UNTRACED, Lifecycle()) as roster,
    ):
        served = dict(served_families(rendered(roster)))
    wanted = {
        each.name: each.kind for each in documented() if each.served_by in SERVED_WITH_TENANTS[role]
    }
    assert served == wanted


async def test_labels_are_those_documented(tmp_path: Path) -> None:
    """Those of samples that are there at once; the others are pinned where they are made."""
    families = {each.name: each for each in documented()}
    text = await scraped(tmp_path, Role.ALL, embedded=True)
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\} ", text, flags=re.MULTILINE):
        base = name if name in families else re.sub(r"_(bucket|sum|count)$", "", name)
        shown = set(re.findall(r'(\w+)="', labels)) - {"le"}
        assert shown == set(families[base].labels), name


def test_every_place_of_the_table_is_known() -> None:
    known = set().union(*SERVED.values(), *SERVED_WITH_TENANTS.values())
    assert {each.served_by for each in documented()} == known


def test_no_label_names_whom_the_data_belongs_to() -> None:
    families: list[Family] = documented()
    assert len({each.name for each in families}) == len(families)
    assert not FORBIDDEN_LABELS & {label for each in families for label in each.labels}
    assert all(each.meaning for each in families)
