"""Callers that miss the cache at once share one discovery (spec 12)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fetcher_engine import (
    ConnectionDescriptor,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TenantContext,
)
from fetcher_engine.memory import MemorySchemaCache

from .hosts import TENANT, Host, host_of
from .loops import RealLoop, run
from .plans import Signal
from .refusals import leaky, refuses

Job = Callable[[], Awaitable[None]]
OTHER = TenantContext.new("other")


class Discovering:
    """One source that answers when told, and callers that are started one by one."""

    def __init__(self, loop: RealLoop, **fields: Any) -> None:
        self.loop = loop
        self.open = False
        self.host = host_of({"a": {"t": [{"x": 1}]}})
        cache = fields.get("cache", MemorySchemaCache())
        self.host = Host(self.host.sources, cache=cache)
        self.source = self.host.sources["a"]
        self.source.before_discovery = self.wait
        self.ends: list[SchemaSnapshot | EngineError] = []

    async def wait(self) -> None:
        while not self.open:
            await self.loop.pause()

    async def call(self, tenant: TenantContext = TENANT) -> None:
        try:
            self.ends.append(await self.host.engine.discover_schema(tenant, "a"))
        except EngineError as error:
            self.ends.append(error)

    async def let_all_wait(self) -> None:
        for _ in range(30):
            await self.loop.pause()

    async def together(self, leader: Job, *followers: Job) -> None:
        """Run all at once, the followers once the leader has asked the source.

        The source answers when all that can wait do so.
        """

        async def follow(job: Job) -> None:
            while not self.discoveries:
                await self.loop.pause()
            await job()

        async def answer() -> None:
            for _ in range(4):
                await self.let_all_wait()
            self.open = True

        jobs: list[Job] = [leader, *(partial(follow, job) for job in followers), answer]
        await self.loop.concurrency.run_ordered(jobs, 100)

    @property
    def discoveries(self) -> int:
        return len(self.host.factories["a"].built)


def test_ten_callers_cause_one_discovery(loop: RealLoop) -> None:
    shared = Discovering(loop)
    run(shared.together(*[shared.call] * 10))
    assert shared.discoveries == 1
    assert [end for end in shared.ends if isinstance(end, SchemaSnapshot)] == [
        shared.host.cache.stored(TENANT, "a") if shared.host.cache else None
    ] * 10


def test_failure_is_told_to_all_and_never_cached(loop: RealLoop) -> None:
    shared = Discovering(loop)
    shared.source.discovery_error = SourceFailure(Stage.AUTH, "auth")
    run(shared.together(*[shared.call] * 5))
    assert shared.discoveries == 1
    errors = [end for end in shared.ends if isinstance(end, EngineError)]
    assert {(e.category, e.stage, e.reason) for e in errors} == {
        (ErrorCategory.CONNECT, Stage.AUTH, "auth")
    }
    assert len({id(error) for error in errors}) == 5
    shared.source.discovery_error = None
    run(shared.call())
    assert isinstance(shared.ends[-1], SchemaSnapshot)
    assert shared.discoveries == 2


def test_failure_names_the_tables_that_each_caller_asked_for(loop: RealLoop) -> None:
    shared = Discovering(loop)
    shared.source.discovery_error = SourceFailure(Stage.SCHEMA, "permission", table="t", column="x")
    told: list[tuple[str, str | None, str | None]] = []

    async def plan(table: str, field: str) -> None:
        request = ExtractionRequest(mapped_fields={"a": {table: [field]}})
        with refuses(ErrorCategory.UNAVAILABLE) as caught:
            await shared.host.engine.plan_extraction(TENANT, request)
        told.append((f"{table}.{field}", caught.value.table, caught.value.column))

    asked = [("t", "x"), ("t", "y"), ("other", "x")]
    run(shared.together(*[partial(plan, table, field) for table, field in asked]))
    assert shared.discoveries == 1
    assert sorted(told) == [("other.x", None, None), ("t.x", "t", "x"), ("t.y", "t", None)]


def test_cancelled_leader_leaves_the_work_to_a_follower(loop: RealLoop) -> None:
    shared = Discovering(loop)

    async def leader() -> None:
        ended = await loop.run_and_cancel(shared.call, lambda: shared.discoveries == 1)
        assert ended == "cancelled"

    run(shared.together(leader, shared.call, shared.call))
    assert shared.discoveries == 2
    assert [type(end) for end in shared.ends] == [SchemaSnapshot] * 2
    assert shared.host.close_counts() == [1, 1]


def test_cancelled_follower_takes_nobody_with_it(loop: RealLoop) -> None:
    shared = Discovering(loop)

    async def follower() -> None:
        waited = iter(range(30))
        ended = await loop.run_and_cancel(shared.call, lambda: next(waited, None) is None)
        assert ended == "cancelled"

    run(shared.together(shared.call, follower, shared.call))
    assert shared.discoveries == 1
    assert [type(end) for end in shared.ends] == [SchemaSnapshot] * 2


def test_leader_whose_host_gives_up_leaves_the_work_to_a_follower(loop: RealLoop) -> None:
    shared = Discovering(loop)
    signal = Signal()
    request = ExtractionRequest(mapped_fields={"a": {"t": ["x"]}})

    async def leader() -> None:
        with refuses(ErrorCategory.CANCELED, "execution canceled"):
            await shared.host.engine.plan_extraction(TENANT, request, cancel=signal)
        shared.source.discovery_error = None

    async def give_up() -> None:
        await shared.let_all_wait()
        # noticed where the source's failure would have been told
        signal.cancelled = True
        shared.source.discovery_error = leaky()

    run(shared.together(leader, shared.call, give_up))
    assert shared.discoveries == 2
    assert [type(end) for end in shared.ends] == [SchemaSnapshot]


def test_follower_whose_host_gives_up_is_cancelled_and_not_failed(loop: RealLoop) -> None:
    shared = Discovering(loop)
    shared.source.discovery_error = leaky()
    signal = Signal()
    request = ExtractionRequest(mapped_fields={"a": {"t": ["x"]}})

    async def follower() -> None:
        with refuses(ErrorCategory.CANCELED, "execution canceled"):
            await shared.host.engine.plan_extraction(TENANT, request, cancel=signal)

    async def give_up() -> None:
        await shared.let_all_wait()
        signal.cancelled = True

    run(shared.together(shared.call, follower, give_up))
    assert shared.discoveries == 1


def test_tenants_and_changed_connections_share_nothing(loop: RealLoop) -> None:
    shared = Discovering(loop)
    shared.host.add("a", OTHER)

    async def changed() -> None:
        await shared.let_all_wait()
        descriptor = ConnectionDescriptor(config_name="a", type="A", host="elsewhere")
        shared.host.store.put(TENANT, descriptor)
        await shared.call()

    async def other() -> None:
        await shared.call(OTHER)

    run(shared.together(shared.call, other, changed))
    assert shared.discoveries == 3


def test_fresh_discovery_waits_for_nobody(loop: RealLoop) -> None:
    shared = Discovering(loop)

    async def fresh() -> None:
        shared.ends.append(await shared.host.engine.discover_schema_fresh(TENANT, "a"))

    run(shared.together(shared.call, fresh, fresh))
    assert shared.discoveries == 3


def test_without_a_cache_each_caller_asks_the_source(loop: RealLoop) -> None:
    shared = Discovering(loop, cache=None)
    run(shared.together(*[shared.call] * 3))
    assert shared.discoveries == 3


def test_without_a_port_nobody_can_wait_and_each_asks(loop: RealLoop) -> None:
    shared = Discovering(loop)
    shared.host = Host(shared.host.sources, concurrency=None, cache=MemorySchemaCache())
    run(shared.together(*[shared.call] * 3))
    assert shared.discoveries == 3
    assert [type(end) for end in shared.ends] == [SchemaSnapshot] * 3
