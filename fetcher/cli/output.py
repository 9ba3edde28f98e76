"""Standard output of a command, which a reader may close and a disk may have no room for."""

import os
import sys
from contextlib import suppress
from typing import Any, Final, TextIO, cast

from fetcher.domain.errors import OutputFailed


class _Output:
    """``sys.stdout`` as it is at the moment, whose failures are told apart from all others."""

    def write(self, text: str) -> int:
        """Raise OutputFailed. What the stream's encoding does not have is shown by its number."""
        try:
            try:
                return sys.stdout.write(text)
            except UnicodeEncodeError:
                encoding = sys.stdout.encoding
                text = text.encode(encoding, "backslashreplace").decode(encoding)
                return sys.stdout.write(text)
        except OSError as error:
            failed = _failed(error)
        raise failed

    def flush(self) -> None:
        """Raise OutputFailed."""
        try:
            sys.stdout.flush()
        except OSError as error:
            failed = _failed(error)
        else:
            return
        raise failed

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


OUTPUT: Final = cast("TextIO", _Output())
"""Where commands print; raises OutputFailed."""


def write_bytes(content: bytes) -> None:
    """On standard output, whatever its encoding. Raise OutputFailed."""
    try:
        sys.stdout.buffer.write(content)
    except OSError as error:
        failed = _failed(error)
    else:
        return
    raise failed


def _failed(error: OSError) -> OutputFailed:
    """What lies in the stream's buffer would fail once more at the interpreter's end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return OutputFailed(error)


def open_what_is_closed() -> None:
    """Python has no stream at all where the caller closed one (``>&-``): what is written there
    goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as the process lives
