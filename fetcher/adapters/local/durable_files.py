"""What a rename needs to survive a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make names that were created, renamed or removed in the folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path, *, below: Path, mode: int) -> None:
    """Create ``folder`` and its parents under ``below``, durably. Raises OSError."""
    if folder == below or folder.is_dir():
        return
    make_folders(folder.parent, below=below, mode=mode)
    folder.mkdir(mode=mode, exist_ok=True)
    sync_folder(folder.parent)
