"""The 17 operations of spec section 8, the three ways to execute told apart, with secrets in."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from fetcher_engine import (
    ConnectionInput,
    ConnectionListParams,
    ConnectionPatch,
    ExecutionMode,
    ExtractionPlan,
    ExtractionRequest,
    Limits,
    PlanStep,
    SchemaValidationRequest,
    Secret,
)

from .faulty_ports import RECORD, TENANT, World
from .leaks import ADDRESS
from .refusals import SENTINEL

FILTERS = {"t": {"x": {"eq": [SENTINEL]}}}
STEP = PlanStep(ordinal=0, config_name="c", fields={"t": ("x", "y"), "u": ()}, filters=FILTERS)
PLAN = ExtractionPlan(tenant_id="acme", request_id="j1", steps=(STEP,), limits=Limits.defaults())
REQUEST = ExtractionRequest(
    mapped_fields={"c": {"t": ["x", "y"], "u": []}},
    filters={"c": FILTERS},
)
NEW = ConnectionInput(
    config_name="new",
    type="T",
    host=ADDRESS,
    password=Secret(SENTINEL),
    host_attributes={"pem": SENTINEL},
)
PATCH = ConnectionPatch(port=1, host_attributes={"pem": SENTINEL}).with_password(SENTINEL)

Operation = Callable[[World], Coroutine[Any, Any, object]]
OPERATIONS: dict[str, Operation] = {
    "create": lambda w: w.engine.connections.create(TENANT, NEW),
    "get": lambda w: w.engine.connections.get(TENANT, "c"),
    "list": lambda w: w.engine.connections.list(TENANT),
    "update": lambda w: w.engine.connections.update(TENANT, "c", PATCH),
    "delete": lambda w: w.engine.connections.delete(TENANT, "c"),
    "check": lambda w: w.engine.connections.check_active_executions(TENANT, "c"),
    "authorize": lambda w: w.engine.connections.authorize_access(TENANT),
    "get_by_id": lambda w: w.engine.connections_by_id.get(TENANT, "id-1"),
    "list_paged": lambda w: w.engine.connections_by_id.list_paged(
        TENANT, ConnectionListParams(SENTINEL)
    ),
    "update_by_id": lambda w: w.engine.connections_by_id.update(TENANT, "id-1", RECORD, PATCH),
    "delete_by_id": lambda w: w.engine.connections_by_id.delete(TENANT, "id-1"),
    "test": lambda w: w.engine.test_connection(TENANT, "c"),
    "discover": lambda w: w.engine.discover_schema(TENANT, "c"),
    "discover_fresh": lambda w: w.engine.discover_schema_fresh(TENANT, "c"),
    "validate": lambda w: w.engine.validate_schema(
        TENANT, SchemaValidationRequest.of({"c": {"t": ["x"]}})
    ),
    "plan": lambda w: w.engine.plan_extraction(TENANT, REQUEST, cancel=w.cancel),
    "direct": lambda w: w.engine.execute_extraction(
        replace(PLAN, mode=ExecutionMode.DIRECT), cancel=w.cancel, progress=w.progress
    ),
    "store": lambda w: w.engine.execute_extraction(PLAN, cancel=w.cancel, progress=w.progress),
    "stream": lambda w: w.engine.stream_extraction(
        PLAN, w.write, cancel=w.cancel, progress=w.progress
    ),
}
EXECUTIONS = ("direct", "store", "stream")
DISCOVERIES = ("discover", "discover_fresh", "validate", "plan")
CACHED = ("discover", "validate", "plan")
SOURCES = ("test", *DISCOVERIES, *EXECUTIONS)
