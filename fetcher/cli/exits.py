"""How commands end, and where their tables go."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from fetcher.cli.output import OUTPUT
from fetcher.cli.printing import complain
from fetcher.domain.cancellation import output_failure
from fetcher.domain.errors import OutputFailed, StartRefused

EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_REJECTED = 3
"""What was fetched is not what was sealed or signed."""
EXIT_UNREAD = 141
"""Standard output was closed by its reader, as the shell tells SIGPIPE."""
NO_TERMINAL_WIDTH = 140


def wide_console() -> Console:
    """Where nobody looks at a screen, lines may be as long as the tables want."""
    console = Console(file=OUTPUT)
    return console if console.is_terminal else Console(file=OUTPUT, width=NO_TERMINAL_WIDTH)


@contextmanager
def telling_what_was_done(told: Callable[[], str]) -> Iterator[None]:
    """Where the command is interrupted or fails in between, which goes on its way. What was refused
    at its start has done nothing, and what only prints has no more to tell."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, StartRefused) and output_failure(error) is None:
            complain(told())
        raise


@contextmanager
def done_all_the_same(done: str) -> Iterator[None]:
    """Around what is printed of a change after it: where that fails it is ``done`` all the same,
    which is told on standard error and which no exit code may deny."""
    try:
        yield
        OUTPUT.flush()
    except OutputFailed as failed:
        complain(f"{done}; {failed}")
