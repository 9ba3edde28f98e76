"""RECORD_STORE, QUEUE_BACKEND, OBJECT_STORE, CACHE_BACKEND (spec configuration 16)."""

import pytest

from fetcher.settings import Role
from tests.unit.settings.test_loading import WORKER, load, refusals

REAL = {
    "RECORD_STORE": ("mongo", "MONGO_HOST"),
    "QUEUE_BACKEND": ("amqp", "RABBITMQ_HOST"),
    "OBJECT_STORE": ("s3", "OBJECT_STORAGE_BUCKET"),
    "CACHE_BACKEND": ("redis", "REDIS_HOST"),
}
EMBEDDED = {
    "RECORD_STORE": "sqlite",
    "QUEUE_BACKEND": "memory",
    "OBJECT_STORE": "folder",
    "CACHE_BACKEND": "memory",
}


def test_an_address_chooses_the_real_part_unless_it_is_overridden() -> None:
    everything = {**WORKER, "REDIS_HOST": "redis.test"}
    real = load(Role.ALL, **everything)
    assert not real.needs_data_folder
    assert real.uses_redis
    overridden = load(Role.ALL, **everything, **{k: v.upper() for k, v in EMBEDDED.items()})
    assert overridden.is_embedded
    assert not overridden.uses_redis


def test_parts_mix_freely() -> None:
    mixed = load(OBJECT_STORAGE_BUCKET="results", RECORD_STORE="sqlite")
    assert mixed.record_store_is_embedded
    assert not mixed.object_store_is_embedded


@pytest.mark.parametrize("switch", REAL)
def test_a_real_part_needs_its_address(switch: str) -> None:
    part, address = REAL[switch]
    environment = {**WORKER, switch: part, address: ""}
    assert f"{address}: required with {switch}={part}" in refusals(environment)


@pytest.mark.parametrize("switch", ["RECORD_STORE", "QUEUE_BACKEND", "OBJECT_STORE"])
def test_an_embedded_part_that_was_asked_for_is_refused_by_its_switch(switch: str) -> None:
    environment = {**WORKER, switch: EMBEDDED[switch]}
    assert (
        f"{switch}: {EMBEDDED[switch]} is refused with --role=worker:"
        " embedded parts need --role=all" in refusals(environment, Role.WORKER)
    )
    assert f"{switch}: {EMBEDDED[switch]} is refused when DEPLOYMENT_MODE=byoc" in refusals(
        {**environment, "DEPLOYMENT_MODE": "byoc"}
    )


@pytest.mark.parametrize("switch", REAL)
def test_an_unknown_part_is_refused_with_the_known_ones(switch: str) -> None:
    [problem] = refusals({switch: "tape"})
    assert problem.startswith(f"{switch}: must be one of '{EMBEDDED[switch]}'")


def test_sqlite_sources_need_a_folder() -> None:
    assert load().has_sqlite_sources
    assert not load(Role.WORKER, **WORKER).has_sqlite_sources
    assert load(Role.WORKER, **WORKER, DATASOURCE_SQLITE_DIR="/srv/files").has_sqlite_sources
