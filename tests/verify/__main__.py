"""``make verify-sources DSN=…``: the connector's checks against a server that somebody has.

The password is read from FETCHER_VERIFY_PASSWORD, or asked for on a terminal.
"""

import getpass
import os
import sys
from collections.abc import Sequence

import trio

from tests.verify.address import PASSWORD_VARIABLE, DsnRefused, parsed
from tests.verify.run import Scale, verify

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """0 only when nothing failed; what was skipped says why."""
    if len(arguments) not in (1, 2) or not arguments[0]:
        print("usage: make verify-sources DSN=scheme://user@host:port/database", file=sys.stderr)
        return EXIT_USAGE
    try:
        scale = Scale(doublings=int(arguments[1])) if len(arguments) > 1 else Scale()
        address = parsed(arguments[0], password=_password())
    except (DsnRefused, ValueError) as refused:
        text = str(refused) if isinstance(refused, DsnRefused) else "the scale is no number"
        print(f"verify-sources: {text}", file=sys.stderr)
        return EXIT_USAGE
    report = trio.run(verify, address, scale)
    print(report.text())
    return EXIT_OK if report.is_good else EXIT_FAILED


def _password() -> str:
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    return getpass.getpass("password: ") if sys.stdin.isatty() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
