"""The wall clock of a real process, which a test sets while it runs.

A library of a few lines is compiled and preloaded, so that everything in the process tells the same
time: Python, SQLite, TLS, each driver. Its monotonic clock, and everybody else's clocks, go on.
"""

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).with_name("set_clock.c")
COMPILE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class SetClock:
    """``variables`` belong into the environment of the process whose clock this is."""

    file: Path
    variables: dict[str, str]

    def set(self, ahead_seconds: int) -> None:
        """From the true time; it is read at each look at the clock."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("=q", ahead_seconds))


def settable_clock(folder: Path, name: str) -> SetClock:
    """At the true time first. Skips the test where nothing compiles C."""
    library = folder / "set_clock.so"
    if not library.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler here: nothing sets the clock of a single process")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-o", library, SOURCE],
            timeout=COMPILE_SECONDS,
            check=True,
        )
    file = folder / f"{name}.clock"
    file.write_bytes(struct.pack("=q", 0))
    return SetClock(file, {"LD_PRELOAD": str(library), "TEST_CLOCK_FILE": str(file)})
