"""What runs here: Fetcher, its libraries, Python and the machine."""

import importlib.metadata
import os
import platform
import re
import resource
import sqlite3
import ssl
from collections.abc import Iterator
from typing import Final

from fetcher.commands.diagnosis import Facts
from fetcher.settings import UNKNOWN_VERSION, Settings

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def versions(settings: Settings) -> Facts:
    open_files, most_open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "fetcher": _version("fetcher"),
        "deployed": settings.version,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "openFiles": {"soft": open_files, "hard": most_open_files},
        "sqlite": sqlite3.sqlite_version,
        "openssl": ssl.OPENSSL_VERSION,
        "libraries": dict(sorted(_libraries())),
    }


def running_version(settings: Settings) -> str:
    """The deployment's, else the package's: for logs, metrics and spans.

    ``/version`` and ``/readyz`` have defaults of their own (spec configuration 2.1, 2.9).
    """
    told = settings.readyz_version
    return told if told != UNKNOWN_VERSION else _version("fetcher") or UNKNOWN_VERSION


def _libraries() -> Iterator[tuple[str, str | None]]:
    """Those that Fetcher names as its own, with its extras; None where one is not installed."""
    try:
        required = importlib.metadata.requires("fetcher") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for requirement in required:
        name = _NAME.match(requirement)
        if name is not None and name[0] != "fetcher":
            yield name[0], _version(name[0])


def _version(name: str) -> str | None:
    """None where it runs from its sources, or is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
