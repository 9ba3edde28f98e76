"""Certificates and keys of a tenant's servers, in files whose paths the Tenant Manager tells.

The paths are another's word: what is read is bounded in size and time, and a pipe or a device is
not waited for. Neither a path nor what lies there is ever in an error.
"""

import os
import ssl
import stat
from pathlib import Path
from typing import Final

import trio

from fetcher.domain.tenants import TenantNotConfigured
from fetcher.fair_places import FairPlaces, limiter_of

MAX_BYTES: Final = 1024 * 1024
"""The whole of a system's trust roots has a quarter of that."""
READ_SECONDS: Final = 5.0

_FOLDER_THREADS: Final = 2
_THREADS: Final = FairPlaces(8)
"""Of their own, and some a folder: a mount that hangs starves neither the process nor who has its
files elsewhere."""


async def tenant_file(path: str, *, what: str) -> str:
    """The text of a PEM file. Raise TenantNotConfigured, which names ``what`` and no path."""
    limiter = limiter_of(_THREADS.of(str(Path(path).parent), _FOLDER_THREADS))
    with trio.move_on_after(READ_SECONDS):
        try:
            return await trio.to_thread.run_sync(
                _read, path, abandon_on_cancel=True, limiter=limiter
            )
        except (OSError, ValueError):  # ValueError: ours, and that of a path with a zero
            pass
    raise TenantNotConfigured(f"the file of {what} cannot be read")


async def tenant_trust_roots(path: str, *, what: str) -> str:
    """As :func:`tenant_file`; what is read holds certificates. An empty path is an empty text."""
    if not path:
        return ""
    pem = await tenant_file(path, what=what)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        pass
    else:
        return pem
    raise TenantNotConfigured(f"the file of {what} holds no certificates")


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("too large")
    # Lines between certificates may be comments in any language.
    return content.decode("ascii", "replace").replace("\ufffd", "?")
