"""A record store that nothing writes: its folder is read-only, and the last user closed it."""

import os
from pathlib import Path
from typing import Final

READ_ONLY: Final = "its folder is read-only"


def lies_read_only(path: Path) -> bool:
    """By its mount, or for want of rights."""
    return not os.access(path.parent, os.W_OK)


def is_still(path: Path) -> bool:
    """SQLite cannot open it as it is: it would make a write-ahead log beside it. Where one lies
    there somebody uses the file, or has not ended in order, and it has to be read as well."""
    has_log = os.path.lexists(path.with_name(f"{path.name}-wal"))
    return lies_read_only(path) and path.is_file() and not has_log


def still_address(path: Path) -> str:
    """For ``sqlite3.connect(..., uri=True)``: no lock is taken, and no file is made beside it."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"
