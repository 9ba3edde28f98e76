"""Jobs of several sources at once, each with the name of its source (spec 10.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from fetcher_engine.concurrency import Concurrency, DeadlineExceeded, Job
from fetcher_engine.errors import EngineError
from fetcher_engine.failures import unexpected


@dataclass(frozen=True, slots=True)
class SourceJob:
    """``source`` is the config name, None for work that belongs to no source."""

    source: str | None
    job: Job


async def run_ordered(concurrency: Concurrency, jobs: Sequence[SourceJob], limit: int) -> None:
    """As the port's method of this name.

    A driver may raise a cancellation though nobody cancelled it, such as that of a future of its
    own. No port lets that pass for a cancellation of the caller; what it raises instead becomes
    ``internal``, with the name of the source that it came from.
    """
    ended: list[str | None] = []

    def noting(each: SourceJob) -> Job:
        async def run() -> None:
            try:
                await each.job()
            except GeneratorExit:
                raise
            except BaseException as ending:
                if not isinstance(ending, Exception):
                    ended.append(each.source)
                raise

        return run

    try:
        return await concurrency.run_ordered([noting(each) for each in jobs], limit)
    except (EngineError, DeadlineExceeded):
        raise
    except Exception:  # noqa: BLE001 - a host's port may raise anything
        # all others were cancelled after the first, and because of it
        failure = unexpected(next(iter(ended), None))
    raise failure
