"""What a host gives by mistake is refused as ``validation``, and never a bare error."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    ConnectionInput,
    ConnectionPatch,
    ErrorCategory,
    ExtractionPlan,
    ExtractionRequest,
    Limits,
    PlanStep,
    Secret,
    TenantContext,
)

from .hosts import TENANT, host_of
from .loops import every_loop, run
from .plans import TWO, one_step
from .refusals import refuses

VALIDATION = ErrorCategory.VALIDATION
PLAN = one_step({"t": ("x",)})


def changed(change: dict[str, Any]) -> Callable[[], ExtractionPlan]:
    return lambda: replace(PLAN, **change)


def a_step(**change: Any) -> Callable[[], PlanStep]:
    return lambda: PlanStep(**{"ordinal": 0, "config_name": "a", "fields": {}, **change})


@every_loop
@pytest.mark.parametrize("plan", [None, {}, "plan", [PLAN]])
def test_what_is_no_plan(plan: Any) -> None:
    engine = host_of(TWO).engine

    async def write(piece: bytes) -> None: ...

    with refuses(VALIDATION, "extraction plan is invalid"):
        run(engine.execute_extraction(plan))
    with refuses(VALIDATION, "extraction plan is invalid"):
        run(engine.stream_extraction(plan, write))


@pytest.mark.parametrize(
    "make",
    [
        changed({"mode": []}),
        changed({"mode": "bogus"}),
        changed({"steps": None}),
        changed({"steps": [{"ordinal": 0}]}),
        changed({"metadata": None}),
        changed({"limits": None}),
        a_step(fields=None),
        a_step(fields=["t"]),
        a_step(fields={"t": "x"}),
        a_step(fields={5: ()}),
        a_step(fields={}, filters=None),
        a_step(fields={}, filters={"t": 5}),
        a_step(config_name=5),
        a_step(ordinal=True),
    ],
)
def test_what_makes_no_plan(make: Callable[[], object]) -> None:
    with refuses(VALIDATION, "extraction plan is invalid"):
        make()


@every_loop
def test_filter_on_a_table_that_a_plan_does_not_read_is_refused() -> None:
    host = host_of(TWO)
    plan = one_step({"t": ("x",)}, filters={"u": {"x": {"eq": [1]}}})
    with refuses(VALIDATION, "extraction plan is invalid"):
        run(host.engine.execute_extraction(plan))
    assert host.close_counts() == []


@every_loop
@pytest.mark.parametrize("request_", [None, {"mappedFields": {}}, PLAN])
def test_what_is_no_request(request_: Any) -> None:
    with refuses(VALIDATION, "extraction request is invalid"):
        run(host_of(TWO).engine.plan_extraction(TENANT, request_))


@pytest.mark.parametrize("overrides", [{}, 5, "small"])
def test_overrides_that_are_no_limits(overrides: Any) -> None:
    with refuses(VALIDATION, "extraction request has malformed overrides"):
        ExtractionRequest(mapped_fields={"a": {"t": ["x"]}}, overrides=overrides)


@pytest.mark.parametrize("condition", [set(), frozenset(), {"in": set()}, {"in": ()}])
def test_condition_that_holds_nothing_of_whatever_kind(condition: Any) -> None:
    with refuses(VALIDATION, "extraction request has malformed filters"):
        ExtractionRequest(mapped_fields={"a": {"t": ["x"]}}, filters={"a": {"t": {"x": condition}}})


@every_loop
@pytest.mark.parametrize(
    "tenant",
    [None, "acme", TenantContext(5), TenantContext(b"acme"), TenantContext("acme", None)],  # type: ignore[arg-type]
)
def test_what_is_no_tenant(tenant: Any) -> None:
    host = host_of(TWO)
    with refuses(VALIDATION, "tenant scope is required"):
        run(host.engine.test_connection(tenant, "a"))
    assert host.store.calls == []


def test_tenant_and_request_ids_are_texts() -> None:
    with refuses(VALIDATION, "tenant id is invalid"):
        TenantContext.new(None)  # type: ignore[arg-type]
    with refuses(VALIDATION, "request id is invalid"):
        TENANT.with_request_id(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("hard", [None, [1], "x"])
def test_hard_limits_that_are_no_mapping(hard: Any) -> None:
    with refuses(VALIDATION, "limit is not a number: limits.connectorHardLimits"):
        Limits(connector_hard_limits=hard)


def test_limit_of_any_size_is_a_number() -> None:
    assert Limits(max_result_bytes=10**400).max_result_bytes == 10**400


def test_password_given_as_text_is_a_secret_at_once() -> None:
    new = ConnectionInput(config_name="c", type="T", password="hunter2")  # type: ignore[arg-type]
    patch = ConnectionPatch(password="hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in f"{new!r} {new} {new.to_public_dict()} {patch!r}"
    assert new.password.reveal() == "hunter2"
    assert patch.password is not None
    assert patch.password.reveal() == "hunter2"


@pytest.mark.parametrize("password", [b"hunter2", 5])
def test_password_of_another_kind_is_refused(password: Any) -> None:
    with refuses(VALIDATION, "connection password is invalid"):
        ConnectionInput(config_name="c", type="T", password=password)
    with refuses(VALIDATION, "connection password is invalid"):
        ConnectionPatch(password=password)


@every_loop
@pytest.mark.parametrize("signal", [object(), True, lambda: False])
def test_what_is_no_cancel_signal(signal: Any) -> None:
    with refuses(VALIDATION, "cancel signal is invalid"):
        run(host_of(TWO).engine.execute_extraction(PLAN, cancel=signal))


@every_loop
@pytest.mark.parametrize("value", [None, {}, "c"])
def test_what_is_no_connection(value: Any) -> None:
    host = host_of(TWO)
    by_name, by_id = host.engine.connections, host.engine.connections_by_id
    with refuses(VALIDATION, "connection input is invalid"):
        run(by_name.create(TENANT, value))
    with refuses(VALIDATION, "connection patch is invalid"):
        run(by_name.update(TENANT, "a", value))
    with refuses(VALIDATION, "connection is invalid"):
        run(by_id.update(TENANT, "1", value, ConnectionPatch()))
    assert host.store.calls == []


def test_secret_is_a_text() -> None:
    with pytest.raises(TypeError, match="a secret is a text"):
        Secret(None)  # type: ignore[arg-type]
