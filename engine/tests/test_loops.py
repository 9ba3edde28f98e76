"""The suite's own rounds: nothing that drives the Engine runs on one loop alone."""

import ast
import asyncio
from pathlib import Path

import pytest

from .hosts import Host, host_of
from .loops import AnyLoop, AsyncioLoop, RealLoop, every_loop, run

RUNNERS = {"run_trampoline", "asyncio.run", "trio.run"}
OF_THE_LOOPS_THEMSELVES = {"test_sequential_concurrency.py", "test_memory_ports.py"}


def runs_by_itself(path: Path) -> bool:
    """Whether a module starts coroutines without asking which round it is."""
    calls = (n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
    return not RUNNERS.isdisjoint(map(ast.unparse, calls))


def test_only_tests_of_the_loops_choose_one() -> None:
    modules = [p for p in Path(__file__).parent.glob("test_*.py") if runs_by_itself(p)]
    assert {p.name for p in modules} <= OF_THE_LOOPS_THEMSELVES


def test_run_without_a_round_is_refused() -> None:
    async def nothing() -> None: ...

    with pytest.raises(LookupError, match="names no loop"):
        run(nothing)


@every_loop
def test_round_gives_its_loop_and_its_concurrency(any_loop: AnyLoop) -> None:
    async def seven() -> int:
        await any_loop.pause()
        return 7

    assert run(seven) == run(seven()) == 7
    assert Host({}).concurrency is host_of({}).concurrency is any_loop.concurrency
    assert host_of({}, None).concurrency is None


def test_cancelled_work_says_so(loop: RealLoop) -> None:
    assert run(lambda: loop.run_and_cancel(loop.hang, lambda: True)) == "cancelled"
    assert run(lambda: loop.run_and_cancel(loop.pause, lambda: False)) == "returned"


def test_task_that_is_left_over_is_a_failure() -> None:
    loop = AsyncioLoop()
    tasks: list[asyncio.Task[None]] = []

    async def forget() -> None:
        tasks.append(asyncio.create_task(loop.hang()))

    with pytest.raises(AssertionError):
        loop.run(forget)
    assert tasks[0].cancelled()
