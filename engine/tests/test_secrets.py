"""Every operation against every port that fails, in every way: what leaves gives nothing away.

A cell is an operation, the point that fails in it (tests/faulty_ports.py) and the exception that
is raised there. ``POINTS`` (tests/secret_faults.py) says what each must end in.
"""

import inspect

import pytest

from fetcher_engine import ErrorCategory, ports

from .faulty_ports import PORT_METHODS, World
from .leaks import gives_nothing_away, tainted
from .loops import TrampolineLoop, every_loop
from .refusals import SENTINEL
from .secret_faults import (
    BUILD,
    CHECK,
    CONNECT,
    CRASH,
    FAULTS,
    ON_FAILURE_ALONE,
    ON_LOOPS_ALONE,
    OWN_TEXT,
    POINTS,
    REGISTRY,
    TEST,
    Halt,
    Rule,
    judge,
    observers_saw_nothing,
    of_secrets,
    of_the_host,
    outcome_of,
)
from .secret_operations import OPERATIONS

trampoline = pytest.mark.loops.with_args(TrampolineLoop)

CELLS = [
    pytest.param(point, rule, operation, id=f"{point}-{operation}")
    for point, rule, operations in POINTS
    for operation in operations
]


@trampoline
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize(("point", "rule", "operation"), CELLS)
def test_foreign_exception_leaves_as_a_fixed_text(
    point: str, rule: Rule, operation: str, kind: str
) -> None:
    fault = tainted(FAULTS[kind]())
    if rule.passes_all and kind != "deadline":
        assert outcome_of(World(point, error=fault), operation) is fault
        return
    error = judge(World(point, error=fault), rule, operation)
    if error is None:
        return
    assert (error.category, error.message) == (rule.category, rule.text)
    assert error.unwrap() is (fault if rule.keeps_cause else None)
    assert (error.stage, error.table, error.column, error.failures) == (None, None, None, ())
    told = rule.is_source and kind in ("words", "objects")
    assert error.reason == ("unknown" if told else None)
    assert error.source == ("c" if rule.is_source or rule in (BUILD, REGISTRY, CRASH) else None)


@trampoline
@pytest.mark.parametrize("category", ErrorCategory)
@pytest.mark.parametrize(("point", "rule", "operation"), CELLS)
def test_engine_error_of_a_port_passes_only_where_it_is_the_hosts_own(
    point: str, rule: Rule, operation: str, category: ErrorCategory
) -> None:
    passes = category in rule.passing
    fault = of_the_host(category) if passes else of_secrets(category)
    cause = fault.unwrap()
    error = judge(World(point, error=tainted(fault)), rule, operation)
    if passes:
        assert error is fault
        assert (fault.category, fault.message, fault.unwrap()) == (category, OWN_TEXT, cause)
    elif error is None:
        return
    elif rule is CHECK and category is ErrorCategory.CONFLICT:
        assert (error.category, error.message) == (category, "connection has active executions")
        assert error.unwrap() is None
    elif rule.is_source and category is CONNECT:
        assert (error.category, error.message) == (CONNECT, TEST.text)
        assert (error.source, error.reason, error.table) == ("c", "unknown", None)
        assert error.unwrap() is cause
    else:
        assert (error.category, error.message) == (rule.category, rule.text)
        assert error.unwrap() is (fault if rule.keeps_cause else None)
        assert (error.reason, error.table, error.column) == (None, None, None)
        assert error.failures == ()


@trampoline
@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize(("point", "rule", "operation"), CELLS)
def test_cancellation_passes_as_it_is_and_without_what_led_to_it(
    point: str, rule: Rule, operation: str, grouped: bool
) -> None:
    halt = Halt()
    tracing = point.startswith(("observability", "span"))
    fault: BaseException = halt if tracing else tainted(halt)
    if grouped and not tracing:
        inner = BaseExceptionGroup(SENTINEL, [RuntimeError(SENTINEL), halt])
        fault = BaseExceptionGroup(SENTINEL, [inner, OSError(SENTINEL)])
    world = World(point, error=fault)
    assert outcome_of(world, operation) is halt
    gives_nothing_away(halt)
    assert all(ending in (halt, None) for ending in world.endings)
    if world.states and point != "executions.save_execution" and not tracing:
        assert world.states[-1].failure_message == "execution canceled"


@every_loop
@pytest.mark.parametrize(("point", "rule", "operation"), CELLS)
def test_on_every_loop_it_is_the_same(
    point: str, rule: Rule, operation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = tainted(RuntimeError(SENTINEL))
    if rule.passes_all:
        assert outcome_of(World(point, error=fault), operation) is fault
    elif (error := judge(World(point, error=fault), rule, operation)) is not None:
        assert (error.category, error.message) == (rule.category, rule.text)
        assert error.unwrap() is (fault if rule.keeps_cause else None)
    assert capsys.readouterr() == ("", "")


@trampoline
@pytest.mark.parametrize("operation", OPERATIONS)
def test_without_a_fault_each_operation_reaches_its_points_and_succeeds(operation: str) -> None:
    world = World()
    assert outcome_of(world, operation) is None
    assert world.reached == {point for point, _, operations in POINTS if operation in operations}
    observers_saw_nothing(world, None)
    assert all(ending is None for ending in world.endings)


def test_every_method_of_every_port_is_a_point() -> None:
    points = {point for point, _, _ in POINTS} | ON_LOOPS_ALONE | ON_FAILURE_ALONE
    beside_methods = {"factory.requires_fields", "span.enter", "span.exit"}
    of_the_host = {"host.write", "host.progress", "host.now"}
    assert points == PORT_METHODS | beside_methods | of_the_host
    declared = {
        name
        for port in vars(ports).values()
        if getattr(port, "_is_protocol", False)
        for name, member in vars(port).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    assert {method.partition(".")[2] for method in PORT_METHODS} == declared
