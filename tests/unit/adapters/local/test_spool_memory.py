"""What waits in the spool lies on the disk alone (design sections 5 and 12)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scale import scaled

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("kind", ["encoded", "rows"])
def test_memory_stays_flat_however_much_waits_in_the_spool(kind: str, tmp_path: Path) -> None:
    small, large = 24, scaled(144)
    growth = {}
    for mebibytes in (small, large):
        command = [sys.executable, "-m", "tests.unit.adapters.local.flat_spool", kind]
        done = subprocess.run(
            [*command, str(tmp_path), str(mebibytes)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        growth[mebibytes], spooled, size = map(int, done.stdout.split())
        assert size >= mebibytes - 2
        # but for what three hand-offs of 4 MiB and the chunk on its way hold
        assert spooled >= mebibytes - 3 * 5
    assert growth[large] <= 64
    assert growth[large] - growth[small] <= 8
    assert list(tmp_path.iterdir()) == []
