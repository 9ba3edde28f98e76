"""The one function of libpq that psycopg does not wrap: error reports with their SQLSTATE.

A server that refuses a login says why in a code; libpq hands on only its text, which comes in the
server's language, unless it was told to be verbose.
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from psycopg.pq.abc import PGconn

_PQERRORS_VERBOSE: Final = 2
"""``PGVerbosity`` in libpq-fe.h."""

_CODE: Final = re.compile(rb":  ([0-9A-Z]{5}): ([^\n]*)")
"""After the severity, which is in the server's language too (``pqBuildErrorMessage3``)."""


def report_codes(pgconn: PGconn) -> None:
    """Let the texts of this connection's errors hold their codes, where libpq can be found."""
    set_verbosity = _set_verbosity()
    pointer = pgconn.pgconn_ptr  # type: ignore[attr-defined] # psycopg's door for functions that it does not wrap; missing in its Protocol
    if set_verbosity is not None and pointer:
        set_verbosity(pointer, _PQERRORS_VERBOSE)


def codes_in(message: bytes) -> list[tuple[str, bytes]]:
    """Each SQLSTATE in the text of failed attempts, with what the server said beside it.

    ``allow`` and ``prefer`` make two attempts, with and without TLS, and the text holds both.
    """
    return [(found[1].decode("ascii"), found[2]) for found in _CODE.finditer(message)]


@cache
def _set_verbosity() -> Callable[[int, int], int] | None:
    """``PQsetErrorVerbosity`` of the library that psycopg loaded; None where it is not found."""
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
        path = next(
            line.split(maxsplit=5)[5]
            for line in mapped.splitlines()
            if re.search(r"/libpq[^/]*\.so[^/]*$", line)
        )
        function = ctypes.CDLL(path).PQsetErrorVerbosity
    except (OSError, StopIteration, AttributeError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_int]
    function.restype = ctypes.c_int
    return function
