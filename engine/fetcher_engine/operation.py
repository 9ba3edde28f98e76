"""The shape that every operation has: a span around it, and only EngineErrors out of it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from fetcher_engine.concurrency import DeadlineExceeded
from fetcher_engine.errors import EngineError
from fetcher_engine.failures import forget_origin, loops_own, timed_out, unexpected
from fetcher_engine.ports import Observability

T = TypeVar("T")
Span = AbstractContextManager[object]


class Spans:
    """Runs operations, each in its span (spec 8, 15, 19.7)."""

    def __init__(self, observability: Observability | None) -> None:
        self._observability = observability

    async def run(
        self,
        name: str,
        body: Callable[[], Awaitable[T]],
        *,
        passes_foreign_errors: bool = False,
    ) -> T:
        """What the body returns.

        Its EngineErrors leave without cause, context and notes, which might hold a driver's text; a
        deadline becomes ``timeout``; any other Exception ``internal``, unless it may pass. The
        loop's cancellation goes through, without what led to it. What a span raises or returns
        decides nothing.
        """
        span = self._started(name)
        passing: Exception | None = None
        failure: BaseException
        try:
            result = await body()
        except EngineError as error:
            failure = error
        except DeadlineExceeded:
            failure = timed_out()
        except Exception as error:  # noqa: BLE001 - nothing foreign leaves (spec 19.7)
            passing = error if passes_foreign_errors else None
            failure = unexpected()
        except BaseException as ending:  # noqa: BLE001 - it goes on, below
            failure = loops_own(ending) or unexpected()
        else:
            _end(span, None)
            return result
        forget_origin(failure)
        _end(span, failure)
        raise passing or failure

    def _started(self, name: str) -> Span | None:
        if self._observability is None:
            return None
        # a host whose telemetry is broken still wants its data
        with suppress(Exception):
            span = self._observability.start_span(name)
            span.__enter__()
            return span
        return None


def _end(span: Span | None, ending: BaseException | None) -> None:
    if span is None:
        return
    with suppress(Exception):
        span.__exit__(
            None if ending is None else type(ending),
            ending,
            None if ending is None else ending.__traceback__,
        )
