"""Parts of ``make bench`` are processes, and none of them keeps the others waiting for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as bench


def test_a_part_that_hangs_is_killed_and_what_it_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = tmp_path / "python"
    hanging.write_text('#!/bin/sh\necho \'{"figure": "a"}\'\necho no figure\nexec sleep 600\n')
    hanging.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(bench, "PART_SECONDS", 0.5)
    said = bench._lines_of("sealing", ())
    assert next(said) == '{"figure": "a"}'
    with pytest.raises(subprocess.CalledProcessError):
        next(said)
