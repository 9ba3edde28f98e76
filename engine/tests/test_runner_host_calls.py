"""The host's own code that an extraction calls: its write and its progress."""

from fetcher_engine import EngineError, ErrorCategory

from .hosts import host_of
from .loops import every_loop, run
from .plans import TWO
from .refusals import leaky, refuses

pytestmark = every_loop


def test_failed_write_ends_the_run_with_the_hosts_exception_to_unwrap() -> None:
    host = host_of(TWO)
    lost = leaky(OSError)

    async def write(piece: bytes | memoryview) -> None:
        raise lost

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.UNAVAILABLE, "failed to persist extraction result") as caught:
        run(main)
    assert caught.value.unwrap() is lost
    assert set(host.close_counts()) == {1}


def test_engine_error_of_a_write_passes() -> None:
    host = host_of(TWO)
    own = EngineError(ErrorCategory.CONFLICT, "lease lost")

    async def write(piece: bytes | memoryview) -> None:
        raise own

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.CONFLICT) as caught:
        run(main())
    assert caught.value is own


def test_progress_that_fails_is_a_contained_crash() -> None:
    host = host_of({"a": TWO["a"]})

    async def write(piece: bytes | memoryview) -> None: ...

    def progress(*seen: object) -> None:
        raise leaky()

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write, progress=progress)

    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly"):
        run(main())
    assert set(host.close_counts()) == {1}
