"""Validating a request against sources that take their time (spec 8.13, 21.7)."""

from fetcher_engine import ErrorCategory, Limits, SchemaValidationRequest
from fetcher_engine.memory import MemorySource

from .hosts import TENANT, Host
from .loops import RealLoop, real_loops, run
from .refusals import refuses
from .test_schema_validation import SHOP, many, of_table

pytestmark = real_loops


def test_deadline_covers_the_whole_validation(loop: RealLoop) -> None:
    source = MemorySource(schema=SHOP, before_discovery=loop.hang)
    host = Host({"shop": source}, options={"limits": Limits(timeout=0.02)})
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        run(host.engine.validate_schema(TENANT, of_table("orders", ["id"])))
    assert host.close_counts() == [1]


def test_sources_are_asked_at_once_up_to_the_limit(loop: RealLoop) -> None:
    running: list[int] = []
    busy = 0

    async def discovering() -> None:
        nonlocal busy
        busy += 1
        for _ in range(5):
            await loop.pause()
        running.append(busy)
        busy -= 1

    names = many(6)
    sources = {n: MemorySource(schema=SHOP, before_discovery=discovering) for n in names}
    host = Host(sources, options={"limits": Limits(max_concurrency=3)})
    request = SchemaValidationRequest.of({name: {"orders": ["id"]} for name in names})
    assert run(host.engine.validate_schema(TENANT, request)).valid
    assert max(running) == 3
