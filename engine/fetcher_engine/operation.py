"""The shape that every operation has: a span around it, and only EngineErrors out of it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from fetcher_engine.concurrency import DeadlineExceeded
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import timed_out
from fetcher_engine.ports import Observability

T = TypeVar("T")


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

        Its EngineErrors leave without cause and context, which might hold a driver's text; a
        deadline becomes ``timeout``; any other Exception ``internal``, unless it may pass. The
        loop's cancellation goes through.
        """
        failure: EngineError
        with self._span(name):
            try:
                return await body()
            except EngineError as error:
                failure = error
            except DeadlineExceeded:
                failure = timed_out()
            except Exception:
                if passes_foreign_errors:
                    raise
                failure = EngineError(ErrorCategory.INTERNAL, "unexpected engine failure")
            failure.__cause__ = failure.__context__ = None
            raise failure

    def _span(self, name: str) -> AbstractContextManager[object]:
        return (
            nullcontext() if self._observability is None else self._observability.start_span(name)
        )
