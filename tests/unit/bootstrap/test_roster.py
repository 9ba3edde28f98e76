"""What the actors are given of the settings, and what HTTP says while they say nothing."""

import importlib.metadata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry

from fetcher.actors.intake import Intake
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.supervisor import Restart
from fetcher.api.services import SystemServices
from fetcher.bootstrap import process_roster
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.publishing import Publishing
from fetcher.bootstrap.roster import Roster
from fetcher.bridge import open_asyncio
from fetcher.domain.backoff import CONSUMER_BACKOFF, TENANT_CONSUMER_BACKOFF, Backoff
from fetcher.domain.ids import new_job_id
from fetcher.settings import Role, Settings


@asynccontextmanager
async def system_services(
    folder: Path, lifecycle: Lifecycle, **settings: str
) -> AsyncIterator[SystemServices]:
    loaded = Settings(fetcher_data_dir=folder, **settings)  # type: ignore[arg-type] # texts only
    async with open_adapters(loaded, Role.ALL) as adapters:
        yield Roster(loaded, Role.ALL, adapters, lifecycle)._system()


async def test_a_health_actor_that_is_silent_is_a_process_that_is_not_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_roster, "ANSWER_SECONDS", 0.05)
    lifecycle = Lifecycle()
    async with system_services(tmp_path, lifecycle) as services:
        assert not (await services.health()).self_probe_passed
        answered = await services.readiness()
        assert not answered.draining
        assert [(name, str(r.status)) for name, r in answered.checks.items()] == [
            ("health", "down")
        ]
        lifecycle.drain()
        assert (await services.readiness()).draining


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ({}, "unknown"),
        ({"version": "v8"}, "v8"),
        ({"version": "v8", "otel_resource_service_version": " v9.1 "}, "v9.1"),
    ],
)
async def test_the_version_that_readiness_shows(
    tmp_path: Path, settings: dict[str, str], version: str
) -> None:
    async with system_services(tmp_path, Lifecycle(), **settings) as services:
        assert services.readiness_version == version


@pytest.mark.parametrize(
    ("settings", "version"),
    [({}, importlib.metadata.version("fetcher")), ({"version": "v8"}, "v8")],
)
async def test_metrics_name_the_packages_version_where_the_deployment_names_none(
    tmp_path: Path, settings: dict[str, str], version: str
) -> None:
    async with system_services(tmp_path, Lifecycle(), **settings) as services:
        assert f'fetcher_build_info{{role="all",version="{version}"}}' in str(
            services.render_metrics()
        )


async def test_events_that_are_not_published_are_all_counted_and_told_once_a_minute(
    tmp_path: Path,
) -> None:
    settings = Settings(fetcher_data_dir=tmp_path)
    async with open_adapters(settings, Role.ALL) as adapters:
        metrics = ActorMetrics(CollectorRegistry())
        publishing = Publishing(settings, adapters, metrics)
        with structlog.testing.capture_logs() as records:
            for result in ("unavailable", "unavailable", "ok", "unroutable", "unavailable"):
                publishing._event_published(new_job_id(), result)
    assert [(r["event"], r["code"]) for r in records] == [
        ("events_not_published", "unavailable"),
        ("events_not_published", "unroutable"),
    ]
    counted = metrics.publishes.labels(kind="event", result="unavailable")
    assert counted._value.get() == 3


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ({"audit_retention_days": "0"}, []),
        ({"audit_retention_days": "0", "result_retention_days": "30"}, ["retention"]),
        ({}, ["retention"]),
    ],
)
async def test_what_has_had_its_time_is_deleted_by_workers_that_are_told_days(
    tmp_path: Path, days: dict[str, str], names: list[str]
) -> None:
    loaded = Settings(fetcher_data_dir=tmp_path, **days)  # type: ignore[arg-type] # texts only
    async with open_adapters(loaded, Role.ALL) as adapters:
        found = Roster(loaded, Role.ALL, adapters, Lifecycle()).actors()
    assert [each.actor.name for each in found if each.actor.name == "retention"] == names


async def test_metrics_tell_how_many_jobs_a_worker_runs_at_most(tmp_path: Path) -> None:
    async with system_services(tmp_path, Lifecycle(), rabbitmq_numbers_of_workers="7") as services:
        assert b"\nfetcher_job_places 7.0\n" in services.render_metrics()


@pytest.mark.parametrize(("asked", "names"), [("false", []), ("true", ["topology_declarer"])])
async def test_the_brokers_objects_are_declared_by_those_that_are_asked_to(
    tmp_path: Path, asked: str, names: list[str]
) -> None:
    loaded = Settings(
        fetcher_data_dir=tmp_path,
        rabbitmq_host="broker.test",
        rabbitmq_declare_topology=asked,  # type: ignore[arg-type] # as in the environment
    )
    for role in Role:
        async with open_asyncio(pytest.fail), open_adapters(loaded, role) as adapters:
            found = Roster(loaded, role, adapters, Lifecycle()).actors()
            declarers = [each for each in found if each.actor.name == "topology_declarer"]
            assert [each.actor.name for each in declarers] == names
            assert all(each.restart is Restart.TRANSIENT for each in declarers)


@pytest.mark.parametrize(
    ("with_tenants", "backoff"), [(False, CONSUMER_BACKOFF), (True, TENANT_CONSUMER_BACKOFF)]
)
async def test_a_consumer_among_those_of_hundreds_of_tenants_comes_back_later(
    tmp_path: Path, with_tenants: bool, backoff: Backoff
) -> None:
    settings = Settings(fetcher_data_dir=tmp_path)
    told = settings.model_copy(update={"multi_tenant_enabled": with_tenants})
    async with open_adapters(settings, Role.ALL) as adapters:
        actors = Roster(told, Role.ALL, adapters, Lifecycle()).work()
    [intake] = [each.actor for each in actors if isinstance(each.actor, Intake)]
    assert intake._backoff is backoff
