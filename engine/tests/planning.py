"""A host to plan on, with a schema worth asking for."""

from typing import Any

from fetcher_engine import (
    ColumnSnapshot,
    ExtractionPlan,
    ExtractionRequest,
    SchemaSnapshot,
    TableSnapshot,
)
from fetcher_engine.memory import MemorySchemaCache, MemorySource

from .hosts import TENANT, Host
from .loops import run

SCHEMA = SchemaSnapshot(
    "",
    (
        TableSnapshot("t1", ("a", "b", "c")),
        TableSnapshot("t2", ("a",)),
        TableSnapshot("docs", ("_id", "profile.name", "profile.mail")),
        TableSnapshot("sql", ("plain", "dotted.name"), (ColumnSnapshot("dotted.name", "text"),)),
    ),
)


def a_host(*names: str, cache: MemorySchemaCache | None = None, **options: Any) -> Host:
    sources = {name: MemorySource(schema=SCHEMA) for name in names or ("a", "z")}
    return Host(sources, options=options, cache=cache)


def plan(host: Host, mapped_fields: Any, **rest: Any) -> ExtractionPlan:
    request = ExtractionRequest(mapped_fields=mapped_fields, **rest)
    return run(host.engine.plan_extraction(TENANT, request))
