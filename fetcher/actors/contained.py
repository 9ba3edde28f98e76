"""A boundary: what fails behind it is handed over as a value, and ends nobody else."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
import trio

from fetcher.domain.crash_report import crash_places, crash_types
from fetcher.domain.errors import PortError

log = structlog.get_logger(__name__)

ErrorT = TypeVar("ErrorT", bound=BaseException)


async def failure_of(work: Callable[[], Awaitable[None]]) -> Exception | None:
    """What ``work`` failed with; None where it ended well. A cancellation goes on alone; a crash
    beside it is told in the log."""
    try:
        await work()
    except Exception as crash:  # noqa: BLE001 - the boundary itself
        return crash
    except BaseExceptionGroup as mixed:
        raise cancellation_in(mixed, _tell_crash) from None
    return None


def cancellation_in(
    mixed: BaseExceptionGroup[BaseException], tell: Callable[[Exception], None]
) -> BaseException:
    """What goes on of a group: its cancellation alone, since a crash beside it would leave the
    process as a traceback, texts and all. ``tell`` hears of that. The whole group where it is of
    another kind."""
    cancelled, crashes = mixed.split(trio.Cancelled)
    if cancelled is None or not isinstance(crashes, ExceptionGroup | None):
        return mixed
    if crashes is not None:
        tell(crashes)
    return cancelled


def _tell_crash(crash: Exception) -> None:
    log.error("crashed_beside_cancellation", crash=crash_types(crash), places=crash_places(crash))


def told_of(failure: BaseException) -> dict[str, object]:
    """What a log may say of it: our own errors' code, else types and places, no text."""
    known = found_in(failure, PortError)
    if known is not None:
        return {"code": known.code}
    if isinstance(failure, trio.TooSlowError):
        return {"code": "timed_out"}
    return {"code": crash_types(failure), "places": crash_places(failure)}


def found_in(error: BaseException, kind: type[ErrorT]) -> ErrorT | None:
    """The first one of ``kind`` inside nested exception groups, as nurseries raise them."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            found = found_in(inner, kind)
            if found is not None:
                return found
    return None
