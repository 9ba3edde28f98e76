"""`fetcher open-result KEY`: fetch, verify, decrypt, print or save."""

import codecs
import os
import stat
import sys
from pathlib import Path

import trio

from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.results import KNOWN_FAILURES, ExpectedResult, fetch_result
from fetcher.cli.exits import EXIT_FAILED, EXIT_REJECTED
from fetcher.cli.output import OUTPUT, write_bytes
from fetcher.cli.printing import complain
from fetcher.crypto.opener import OpenedResult, ResultRejected
from fetcher.domain.visible_text import visible_in_json


def open_stored_result(
    target: CommandTarget, key: str, *, expected: ExpectedResult | None, output: Path | None
) -> int:
    """Nothing is written before all of it was verified."""
    try:
        opened = trio.run(fetch_result, target, key, expected)
    except KNOWN_FAILURES as failed:
        complain(f"open-result: {describe(failed)}")
        return EXIT_REJECTED if isinstance(failed, ResultRejected) else EXIT_FAILED
    return write_or_complain("open-result", opened, output)


def write_or_complain(command: str, opened: OpenedResult, output: Path | None) -> int:
    """Print or save it, and close it; the exit code. Raise OutputFailed."""
    try:
        with opened:
            write(opened, output)
    except OSError as failed:
        complain(f"{command}: {output}: {failed.strerror}")
        return EXIT_FAILED
    return 0


def write(opened: OpenedResult, output: Path | None) -> None:
    if output is None:
        show(opened)
    else:
        save(opened, output)
        complain(f"{output}: {opened.size_bytes} bytes, verified")


def show(opened: OpenedResult) -> None:
    """Byte by byte, but on a terminal: there the rows move no cursor, and it is the same JSON."""
    if not sys.stdout.isatty():
        for chunk in opened.chunks():
            write_bytes(chunk)
    else:
        texts = codecs.iterdecode(opened.chunks(), "utf-8")
        for text in texts:
            write_bytes(visible_in_json(text).encode())
    OUTPUT.flush()


def describe(failed: Exception) -> str:
    return str(failed) or getattr(failed, "code", type(failed).__name__)


def save(opened: OpenedResult, output: Path) -> None:
    """A file that only its owner can read, also where one with another mode lay there before.

    A pipe or a device (`/dev/null`) is not ours to close to others.
    """
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
        for chunk in opened.chunks():
            file.write(chunk)
