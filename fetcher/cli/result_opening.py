"""`fetcher open-result KEY`: fetch, verify, decrypt, print or save."""

import os
import sys
from pathlib import Path

import trio

from fetcher.bootstrap.results import KNOWN_FAILURES, ExpectedResult, fetch_result
from fetcher.cli.exits import EXIT_FAILED, EXIT_REJECTED
from fetcher.crypto.opener import OpenedResult, ResultRejected
from fetcher.settings import Settings


def open_stored_result(
    settings: Settings, key: str, *, expected: ExpectedResult | None, output: Path | None
) -> int:
    """Nothing is written before all of it was verified."""
    try:
        opened = trio.run(fetch_result, settings, key, expected)
    except KNOWN_FAILURES as failed:
        print(f"open-result: {describe(failed)}", file=sys.stderr)
        return EXIT_REJECTED if isinstance(failed, ResultRejected) else EXIT_FAILED
    try:
        with opened:
            write(opened, output)
    except OSError as failed:
        print(f"open-result: {output or 'standard output'}: {failed.strerror}", file=sys.stderr)
        return EXIT_FAILED
    return 0


def write(opened: OpenedResult, output: Path | None) -> None:
    if output is None:
        for chunk in opened.chunks():
            sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
    else:
        save(opened, output)
        print(f"{output}: {opened.size_bytes} bytes, verified", file=sys.stderr)


def describe(failed: Exception) -> str:
    return str(failed) or getattr(failed, "code", type(failed).__name__)


def save(opened: OpenedResult, output: Path) -> None:
    """A file that only its owner can read, also where one with another mode lay there before."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        for chunk in opened.chunks():
            file.write(chunk)
