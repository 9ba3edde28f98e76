"""RedisServer: deadlines, the breaker, and what is told of it."""

import asyncio

import pytest
import trio
from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,  # noqa: A004 - redis-py's
    NoPermissionError,
    ResponseError,
)
from structlog.testing import capture_logs
from trio.testing import MockClock

from fetcher.adapters.redis.server import RedisServer
from fetcher.domain.errors import PortUnavailable
from tests.unit.adapters.redis.fake_redis import FakeRedis, a_server

CANARY = "canary-5ecret"


class Operation:
    """Counts its calls; fails while it is told to, hangs for as long as it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.failure: Exception | None = None
        self.seconds = 0.0

    async def __call__(self, _client: Redis) -> str:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        return "done"


def is_away(server: RedisServer) -> bool:
    return server.is_away


async def is_refused(server: RedisServer, operation: Operation) -> bool:
    try:
        return await server.run(operation) != "done"
    except PortUnavailable:
        return True


async def test_one_failure_and_it_is_left_alone_for_five_seconds(
    autojump_clock: MockClock,
) -> None:
    operation = Operation()
    async with a_server(FakeRedis()) as server:
        operation.failure = ConnectionError(CANARY)
        assert await is_refused(server, operation)
        operation.failure = None
        await trio.sleep(4.9)
        assert await is_refused(server, operation)
        assert operation.calls == 1
        await trio.sleep(0.1)
        assert await server.run(operation) == "done"
        assert await server.run(operation) == "done"
        assert operation.calls == 3


async def test_a_trial_that_fails_leaves_it_alone_for_another_five_seconds(
    autojump_clock: MockClock,
) -> None:
    operation = Operation()
    operation.failure = ConnectionError(CANARY)
    async with a_server(FakeRedis()) as server:
        for round_number in range(1, 5):
            for _ in range(3):
                assert await is_refused(server, operation)
            assert operation.calls == round_number
            await trio.sleep(5)


async def test_one_of_many_tries_it_and_the_others_do_not_wait(autojump_clock: MockClock) -> None:
    operation = Operation()
    operation.failure = ConnectionError(CANARY)
    async with a_server(FakeRedis()) as server:
        assert await is_refused(server, operation)
        await trio.sleep(5)
        operation.failure, operation.seconds = None, 0.3
        refused: list[tuple[bool, float]] = []
        started = trio.current_time()

        async def use() -> None:
            outcome = await is_refused(server, operation)
            refused.append((outcome, trio.current_time() - started))

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(use)
        assert [outcome for outcome, _ in refused] == [True] * 5 + [False]
        assert all(seconds < 0.1 for _, seconds in refused[:5])
        assert operation.calls == 2


async def test_an_operation_that_hangs_costs_half_a_second(autojump_clock: MockClock) -> None:
    operation = Operation()
    operation.seconds = 60
    async with a_server(FakeRedis()) as server:
        started = trio.current_time()
        with pytest.raises(PortUnavailable, match="redis did not answer in time: timeout"):
            await server.run(operation)
        assert trio.current_time() - started == pytest.approx(0.5, abs=0.05)


async def test_a_caller_that_is_cancelled_says_nothing_about_redis(
    autojump_clock: MockClock,
) -> None:
    operation = Operation()
    operation.seconds = 0.4
    async with a_server(FakeRedis()) as server:
        with trio.move_on_after(0.1) as scope:
            await server.run(operation)
        assert scope.cancelled_caught
        assert not server.is_away
        assert await server.run(operation) == "done"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (AuthenticationError(CANARY), "redis refused the credentials"),
        (NoPermissionError(CANARY), "redis does not permit its user what is needed"),
        (ResponseError(CANARY), "redis refused the operation"),
        (ConnectionError(CANARY), "redis cannot be reached"),
        (OSError(CANARY), "redis cannot be reached"),
        (ValueError(CANARY), "redis cannot be reached"),
        (RecursionError(CANARY), "redis cannot be reached"),
    ],
)
async def test_failures_have_fixed_texts(
    autojump_clock: MockClock, failure: Exception, text: str
) -> None:
    operation = Operation()
    operation.failure = failure
    async with a_server(FakeRedis()) as server:
        with capture_logs() as logs, pytest.raises(PortUnavailable) as refused:
            await server.run(operation)
    assert str(refused.value) == text
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert logs == [
        {
            "event": "redis_away",
            "log_level": "warning",
            "why": text,
            "meaning": "serving from process memory",
        }
    ]


async def test_each_change_is_told_once(autojump_clock: MockClock) -> None:
    operation = Operation()
    operation.failure = ConnectionError()
    async with a_server(FakeRedis()) as server:
        with capture_logs() as logs:
            for _ in range(4):
                assert await is_refused(server, operation)
                await trio.sleep(5)
            operation.failure = None
            for _ in range(3):
                assert await server.run(operation) == "done"
    assert [(record["event"], record.get("away_seconds")) for record in logs] == [
        ("redis_away", None),
        ("redis_back", 20.0),
    ]


async def test_it_counts_as_away_for_a_minute_after_its_last_use_failed(
    autojump_clock: MockClock,
) -> None:
    operation = Operation()
    async with a_server(FakeRedis()) as server:
        assert not is_away(server)
        operation.failure = ConnectionError()
        assert await is_refused(server, operation)
        assert is_away(server)
        await trio.sleep(59)
        assert is_away(server)
        assert await is_refused(server, operation)
        await trio.sleep(59)
        assert is_away(server)
        await trio.sleep(1)
        assert not is_away(server)
        assert await is_refused(server, operation)
        assert is_away(server)
        await trio.sleep(5)
        operation.failure = None
        assert await server.run(operation) == "done"
        assert not is_away(server)


async def test_a_tenant_with_many_operations_neither_makes_another_wait_nor_redis_be_away(
    autojump_clock: MockClock,
) -> None:
    operation = Operation()
    operation.seconds = 0.1
    refused: list[str] = []

    async with a_server(FakeRedis()) as server:

        async def ask() -> None:
            try:
                await server.run(operation, tenant_id="loud")
            except PortUnavailable as failure:
                refused.append(str(failure))

        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(ask)
            await trio.sleep(0.05)
            started = trio.current_time()
            assert await server.run(operation, tenant_id="other") == "done"
            assert trio.current_time() - started == pytest.approx(0.15, abs=0.02)
        # three rounds of ten began in time, with the other one's among them
        assert operation.calls == 30
        assert refused == ["redis has no connection to spare"] * 71
        assert not is_away(server)
        assert await server.run(operation, tenant_id="loud") == "done"
