"""The command line: `fetcher --role=…` and the operator's commands.

Exit codes: 0 done, 1 failed, 2 bad settings or usage.
"""

from fetcher.cli.app import main

__all__ = ["main"]
