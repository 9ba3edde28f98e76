"""Threads for sources, shared out among tenants."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from fetcher.bootstrap.tenancy.fair_threads import FairThreads
from fetcher.datasources.addresses import resolve
from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.threads import PROCESS_THREADS, ThreadKind, in_thread
from tests.servers.waiting import eventually


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Until it is set, nothing that hangs returns; whatever happens, it is set at the end."""
    event = threading.Event()
    yield event
    event.set()


async def test_names_that_nobody_answers_for_hold_no_thread_of_another_tenant(
    monkeypatch: pytest.MonkeyPatch, answer: threading.Event
) -> None:
    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        if host.startswith("silent"):
            answer.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    threads = FairThreads()
    slow, other = threads.of_tenant("slow"), threads.of_tenant("other")

    async def look_up(number: int) -> None:
        await resolve(f"silent-{number}", 0, threads=slow)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(look_up, number)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        # all were given up, and half of all threads still wait for the resolver
        assert await resolve("db", 0, threads=other) == ("10.0.0.1",)
        with trio.move_on_after(0.1) as waiting:
            await look_up(40)
        assert waiting.cancelled_caught
        answer.set()
        assert await resolve("db", 0, threads=slow) == ("10.0.0.1",)


async def test_calls_that_hang_hold_half_of_their_kind_and_nothing_of_another(
    answer: threading.Event,
) -> None:
    kind, another = ThreadKind(4), ThreadKind(1)
    threads = FairThreads()
    slow, other = threads.of_tenant("slow"), threads.of_tenant("other")
    hung: list[int] = []

    async def hang(number: int) -> None:
        def wait() -> None:
            hung.append(number)
            answer.wait(10)

        await DriverThread(slow.of(kind), answer.set).run(wait)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(hang, number)
            await trio.testing.wait_all_tasks_blocked()
            assert await in_thread(other.of(kind), len, "four") == 4
            assert await in_thread(slow.of(another), len, "four") == 4
            await eventually(lambda: len(hung) >= 2, deadline_seconds=5)
            assert len(hung) == 2
            answer.set()
    assert len(hung) == 4
    assert threads.places(kind).free == 4


async def test_without_tenants_a_kind_has_all_its_threads() -> None:
    kind = ThreadKind(3)
    limiter = PROCESS_THREADS.of(kind)
    assert limiter is PROCESS_THREADS.of(kind)
    assert isinstance(limiter, trio.CapacityLimiter)
    assert limiter.total_tokens == 3


@given(
    calls=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans(), st.booleans()),
        max_size=12,
    )
)
def test_no_thread_is_lost_whoever_gives_up(calls: list[tuple[str, int, bool, bool]]) -> None:
    """Each call: whose, how many rounds it is left alone, whether it fails, whether its thread may
    be left behind."""
    trio.run(_play, calls)


async def _play(calls: list[tuple[str, int, bool, bool]]) -> None:
    kind, threads = ThreadKind(3), FairThreads()
    answer = threading.Event()

    def work(fails: bool) -> None:
        answer.wait(10)
        if fails:
            raise KeyError

    async def call(tenant: str, fails: bool, abandons: bool, scope: trio.CancelScope) -> None:
        with scope:
            try:
                limiter = threads.of_tenant(tenant).of(kind)
                await in_thread(limiter, work, fails, abandon_on_cancel=abandons)
            except KeyError:
                assert fails

    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in calls]
        for (tenant, _, fails, abandons), scope in zip(calls, scopes, strict=True):
            nursery.start_soon(call, tenant, fails, abandons, scope)
        for round_number in range(3):
            await trio.testing.wait_all_tasks_blocked()
            for (_, rounds, _, _), scope in zip(calls, scopes, strict=True):
                if rounds == round_number:
                    scope.cancel()
        answer.set()
    with trio.fail_after(5):
        # threads that were left behind give their places back when they end
        while threads.places(kind).free < 3:
            await trio.testing.wait_all_tasks_blocked()
