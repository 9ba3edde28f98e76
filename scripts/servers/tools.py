"""Programs that tests run beside the servers, and without which they skip what needs them."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

PACKAGES: Final[Mapping[str, str]] = MappingProxyType(
    {"promtool": "prometheus", "chromium": "chromium"}
)
"""By program, Debian's package that has it."""

Find = Callable[[str], str | None]


def missing(find: Find = shutil.which) -> list[str]:
    """The programs that are not on the path."""
    return [program for program in PACKAGES if find(program) is None]


def provide(
    install: Callable[[Sequence[str]], None] | None, *, find: Find = shutil.which
) -> list[str]:
    """Install what is missing; what is not here afterwards.

    Without ``install`` nothing is done: tests say themselves what they were not run for.

    Raises:
        InstallationError: a package could not be installed.
    """
    absent = missing(find)
    if absent and install is not None:
        install([PACKAGES[program] for program in absent])
        return missing(find)
    return absent
