"""How something ended that may have been cancelled or interrupted: a nursery hands on groups."""

from collections.abc import Iterator

import trio

from fetcher.domain.errors import OutputFailed


def is_cancellation(ending: BaseException) -> bool:
    """Also a group of nothing else; one that holds a failure besides is a failure."""
    return next(_failures(ending), None) is None


def is_interruption(ending: BaseException) -> bool:
    """SIGINT, also in a group; one that holds a failure besides is a failure. That nobody took what
    was printed at that moment is none."""
    failures = list(_failures(ending))
    return any(isinstance(each, KeyboardInterrupt) for each in failures) and all(
        isinstance(each, KeyboardInterrupt | OutputFailed) for each in failures
    )


def output_failure(ending: BaseException) -> OutputFailed | None:
    """Standard output's, where nothing else failed: what whoever reads it should know comes first,
    as a full disk before a reader who has seen enough."""
    failures = list(_failures(ending))
    told = [each for each in failures if isinstance(each, OutputFailed)]
    if not told or len(told) < len(failures):
        return None
    return min(told, key=lambda each: each.is_unread)


def sole_failure(ending: BaseException) -> BaseException:
    """The one failure of a group that holds nothing but cancellations besides; else ``ending``."""
    failures = list(_failures(ending))
    return failures[0] if len(failures) == 1 else ending


def _failures(ending: BaseException) -> Iterator[BaseException]:
    """What is no cancellation, out of its groups."""
    if isinstance(ending, BaseExceptionGroup):
        for each in ending.exceptions:
            yield from _failures(each)
    elif not isinstance(ending, trio.Cancelled):
        yield ending
