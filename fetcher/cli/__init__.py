"""The command line: `fetcher --role=…` and the operator's commands.

Exit codes: 0 done, 1 failed, 2 bad settings or usage, 130 interrupted (SIGINT), 141 nobody read
standard output to its end.
"""

import sys

EXIT_INTERRUPTED = 130
"""By SIGINT, as the shell tells it. It stands here since nothing of ours is imported yet when that
may come."""


def main() -> None:
    """Run one command; never returns."""
    try:
        # Imports take most of a command's first second, in which it may be interrupted too.
        from fetcher.cli.app import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        print("fetcher: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
