"""Jobs that read from the operator's own data sources."""

import json
from collections.abc import Sequence

import pytest

from fetcher.domain.connections import Connection, Origin, SourceType
from fetcher.domain.internal_sources import INTERNAL_SOURCES
from fetcher.domain.jobs import JobStatus
from fetcher_engine import (
    SourceFailure,
    Stage,
)
from tests.unit.commands.job_bench import (
    Bench,
    Sources,
    a_connection,
)


def an_internal(name: str = "plugin_crm", **changes: object) -> Connection:
    return a_connection(
        config_name=name,
        product_name="",
        origin=Origin.INTERNAL,
        encryption_key_version="",
        **{"type": INTERNAL_SOURCES[name], **changes},
    )


async def test_internal_and_stored_sources_are_resolved_together() -> None:
    """Row of datasources 19.10: the name is internal, whatever is stored under it."""
    internal = an_internal()
    bench = Bench(internal={"plugin_crm": internal})
    stored = a_connection(config_name="ext-a")
    await bench.records.connections.insert(stored)
    await bench.records.connections.insert(
        a_connection(config_name="plugin_crm", product_name="somebody-else")
    )
    resolve = bench.resolve
    assert await resolve(["plugin_crm", "ext-a"]) == [stored, internal]
    assert await resolve(["nobody", "plugin_crm"]) == [internal]
    claim = await bench.claimed(
        mapped_fields={"ext-a": {"orders": ("id",)}, "plugin_crm": {"orders": ("id",)}}
    )
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.COMPLETED, outcome.failure
    engines = bench.run_job._parts.engines
    assert isinstance(engines, Sources)
    assert engines.built == [stored.id, internal.id]


@pytest.mark.parametrize(
    ("name", "code"), [("plugin_crm", "FET-0054"), ("midaz_onboarding", "not_found")]
)
async def test_an_internal_source_without_its_variables_fails_the_job_by_name(
    name: str, code: str
) -> None:
    """No fall-back to a stored connection of the name, and nothing else is looked up."""
    bench = Bench()
    await bench.records.connections.insert(a_connection(config_name=name))

    async def never(names: Sequence[str]) -> list[Connection]:
        raise AssertionError(names)

    bench.records.connections.find_by_config_names = never  # type: ignore[method-assign] # a probe
    claim = await bench.claimed(
        mapped_fields={name: {"orders": ("id",)}, "sales_db": {"orders": ("id",)}}
    )
    outcome = await bench.outcome(claim)
    message = f"internal datasource '{name}' not configured via environment variables"
    assert outcome.failure is not None
    assert (outcome.failure.message, outcome.failure.code) == (message, code)
    assert outcome.failure.source == name
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == message


@pytest.mark.parametrize(
    ("source_type", "reason", "code"),
    [
        (SourceType.MONGODB, "driver_missing", "FET-0055"),
        (SourceType.MONGODB, "hash_key_missing", "FET-0057"),
        (SourceType.MONGODB, "encrypt_key_missing", "FET-0058"),
        (SourceType.MONGODB, "encrypt_key_unusable", "FET-0064"),
        (SourceType.MONGODB, "decryption_failed record_3", "FET-0065"),
        (SourceType.MONGODB, "forbidden", "unavailable"),
        (SourceType.POSTGRESQL, "driver_missing", "unavailable"),
    ],
)
async def test_plugin_crm_has_codes_of_its_own(
    source_type: SourceType, reason: str, code: str
) -> None:
    """Spec datasources 15.6. Of another type it is a source like any other."""
    bench = Bench(internal={"plugin_crm": an_internal(type=source_type)})
    bench.source.stream_error = SourceFailure(Stage.ROWS, reason, table="orders", column="note")
    claim = await bench.claimed(mapped_fields={"plugin_crm": {"orders": ("id", "note")}})
    outcome = await bench.outcome(claim)
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.reason) == (code, reason)
    words = reason.replace("_", " ")
    assert failure.message == f"plugin_crm: rows failed: {words} (orders.note)"
    error = json.loads(outcome.event.payload)["metadata"]["error"]
    assert (error["code"], error["message"]) == (code, failure.message)


async def test_a_logical_collection_that_nobody_has() -> None:
    bench = Bench(internal={"plugin_crm": an_internal()})
    claim = await bench.claimed(mapped_fields={"plugin_crm": {"holders": ("id",)}})
    outcome = await bench.outcome(claim)
    assert outcome.failure is not None
    assert outcome.failure.code == "FET-0059"
    assert outcome.failure.message == "plugin_crm: schema mismatch: missing tables holders"


async def test_another_sources_failure_has_no_code_of_plugin_crm() -> None:
    bench = Bench(internal={"plugin_crm": an_internal()})
    await bench.records.connections.insert(a_connection(config_name="a_db"))
    claim = await bench.claimed(
        mapped_fields={"a_db": {"nothing": ("id",)}, "plugin_crm": {"orders": ("id",)}}
    )
    outcome = await bench.outcome(claim)
    assert outcome.failure is not None
    assert (outcome.failure.source, outcome.failure.code) == ("a_db", "validation")
